package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Gate is an installation of a Cluster, as it stood.
type Gate struct {
	UID types.UID
	// Set that has it; empty: none.
	Set string
	// Version that is installed, and the version of Kubernetes that it was made for.
	Version, MadeFor string
	// Ready says that it is Ready at its generation.
	Ready bool
}

// Progress is how far a Cluster was in an upgrade when one of its objects was stored. Versions have no v.
type Progress struct {
	// Wanted is the version that its topology asks for, ControlPlane what its control plane was told to have.
	Wanted, ControlPlane string
	// Workers are the versions of its pools' templates, each once.
	Workers []string
	// Hook says that Trellis's hook is on, Held that its hold is on the first pool of each kind.
	Hook, Held bool
	// Stage is the reason of condition UpgradeHeld.
	Stage string
	// Gates by the names of their items.
	Gates map[string]Gate
}

// History is what became of one Cluster, in the order in which the API server stored it: one counter numbers the objects of all kinds. So
// it tells what came first also where both came within a millisecond.
type History struct {
	cluster types.NamespacedName
	cancel  context.CancelFunc
	group   sync.WaitGroup

	mutex  sync.Mutex
	stored []stored
	// trouble is why the history has a gap; nil as a rule.
	trouble error
}

// stored is an object as the API server stored it, or as it was when it was deleted.
type stored struct {
	order  uint64
	isGone bool
	object client.Object
}

// Follow begins a history with what is there, until Stop.
func Follow(ctx context.Context, c client.WithWatch, cluster types.NamespacedName) (*History, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &History{cluster: cluster, cancel: cancel}
	for _, kind := range []client.ObjectList{
		list(ClusterKind), list(ControlPlaneKind), list(MachineDeploymentKind), list(MachinePoolKind),
		&v1.AddonInstallationList{}, &v1.AddonCatalogueList{},
	} {
		changes, err := c.Watch(ctx, kind, client.InNamespace(cluster.Namespace))
		if err != nil {
			h.Stop()
			return nil, fmt.Errorf("watching what becomes of Cluster %q: %w", cluster.Name, err)
		}
		h.group.Go(func() { h.follow(ctx, changes) })
	}
	return h, nil
}

// Stop ends it; what it has can be told.
func (h *History) Stop() {
	h.cancel()
	h.group.Wait()
}

func (h *History) follow(ctx context.Context, changes watch.Interface) {
	defer changes.Stop()
	for event := range changes.ResultChan() {
		object, isObject := event.Object.(client.Object)
		if event.Type == watch.Bookmark || !isObject {
			continue
		}
		order, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		h.mutex.Lock()
		if err != nil {
			h.trouble = fmt.Errorf("reading the version of an object: %w", err)
		}
		h.stored = append(h.stored, stored{order: order, isGone: event.Type == watch.Deleted, object: object})
		h.mutex.Unlock()
	}
	if ctx.Err() != nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.trouble = fmt.Errorf("a watch of Cluster %q ended", h.cluster.Name)
}

// Tell has each state seen, from the first that has a control plane and workers; an error ends it, and is returned.
func (h *History) Tell(see func(Progress) error) error {
	h.mutex.Lock()
	all, trouble := slices.Clone(h.stored), h.trouble
	h.mutex.Unlock()
	if trouble != nil {
		return trouble
	}
	slices.SortStableFunc(all, func(a, b stored) int { return cmp.Compare(a.order, b.order) })
	teller := teller{cluster: h.cluster.Name, workers: map[string]string{}, now: Progress{Gates: map[string]Gate{}}}
	for _, one := range all {
		if !teller.take(one) || teller.now.ControlPlane == "" || len(teller.workers) == 0 {
			continue
		}
		if err := see(teller.progress()); err != nil {
			return err
		}
	}
	return nil
}

// teller puts one state after the other together.
type teller struct {
	cluster string
	// workers are the versions of templates, by kind and name.
	workers map[string]string
	now     Progress
}

func (t *teller) progress() Progress {
	seen := t.now
	seen.Gates = map[string]Gate{}
	maps.Copy(seen.Gates, t.now.Gates)
	seen.Workers = slices.Compact(slices.Sorted(maps.Values(t.workers)))
	return seen
}

// take an object of the Cluster; false: it is another one's.
func (t *teller) take(one stored) bool {
	switch object := one.object.(type) {
	case *v1.AddonInstallation:
		item, isOurs := strings.CutPrefix(object.Name, t.cluster+".")
		if !isOurs || object.Spec.ClusterName != t.cluster {
			return false
		}
		if t.now.Gates[item] = gateOf(object); one.isGone {
			delete(t.now.Gates, item)
		}
		return true
	case *v1.AddonCatalogue:
		held := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionUpgradeHeld)
		if object.Name != v1.AvailableCatalogue+"-"+t.cluster || held == nil {
			return false
		}
		t.now.Stage = held.Reason
		return true
	case *unstructured.Unstructured:
		return t.takeOfClusterAPI(object, one.isGone)
	}
	return false
}

func (t *teller) takeOfClusterAPI(object *unstructured.Unstructured, isGone bool) bool {
	switch kind, isOurs := object.GetKind(), object.GetLabels()[clusterNameLabel] == t.cluster; {
	case kind == ClusterKind.Kind && object.GetName() == t.cluster:
		t.now.Wanted = textAt(object.Object, "spec", "topology", "version")
		_, t.now.Hook = object.GetAnnotations()[capiv1.AnnotationBeforeUpgrade]
		t.now.Held = isHeld(object, "machineDeployments") && isHeld(object, "machinePools")
	case kind == ClusterKind.Kind || !isOurs:
		return false
	case kind == ControlPlaneKind.Kind:
		t.now.ControlPlane = textAt(object.Object, "spec", "version")
	case isGone:
		delete(t.workers, kind+"/"+object.GetName())
	default:
		t.workers[kind+"/"+object.GetName()] = textAt(object.Object, "spec", "template", "spec", "version")
	}
	return true
}

func textAt(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return strings.TrimPrefix(text, "v")
}

// isHeld says whether Trellis holds the first pool of a kind; one of which there is none is not in the way.
func isHeld(cluster *unstructured.Unstructured, kind string) bool {
	pools, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", kind)
	if len(pools) == 0 {
		return true
	}
	first, _ := pools[0].(map[string]any)
	return textAt(first, "metadata", "annotations", capiv1.AnnotationHoldSequence) == "trellis"
}

func gateOf(object *v1.AddonInstallation) Gate {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionReady)
	gate := Gate{
		UID: object.UID, Set: object.Labels[v1.LabelSet], Version: object.Status.Version,
		Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == object.Generation,
	}
	if object.Status.LastApplied != nil {
		gate.MadeFor = object.Status.LastApplied.K8sVersion
	}
	return gate
}
