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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	client  client.Reader
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

// followed are the kinds of a history, each of which has a watch.
func followed() []client.ObjectList {
	return []client.ObjectList{
		list(ClusterKind), list(ControlPlaneKind), list(MachineDeploymentKind), list(MachinePoolKind),
		&v1.AddonInstallationList{}, &v1.AddonCatalogueList{},
	}
}

// Follow begins a history with what is there, until Stop.
func Follow(ctx context.Context, c client.WithWatch, cluster types.NamespacedName) (*History, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &History{client: c, cluster: cluster, cancel: cancel}
	for _, kind := range followed() {
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

// Complete waits until the history has all that is stored by now. Before, a watch may be behind another one: what came first is not to be
// judged then. What was deleted last may be missing.
func (h *History) Complete(ctx context.Context) error {
	var all []client.Object
	for _, kind := range followed() {
		if err := h.client.List(ctx, kind, client.InNamespace(h.cluster.Namespace)); err != nil {
			return fmt.Errorf("listing what became of Cluster %q: %w", h.cluster.Name, err)
		}
		err := meta.EachListItem(kind, func(item runtime.Object) error {
			one, isObject := item.(client.Object)
			if !isObject {
				return fmt.Errorf("listing what became of Cluster %q: a %T", h.cluster.Name, item)
			}
			all = append(all, one)
			return nil
		})
		if err != nil {
			return err
		}
	}
	isComplete := func(context.Context) (bool, error) { return h.has(all) }
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, time.Minute, true, isComplete)
	if err != nil {
		return fmt.Errorf("waiting for all that became of Cluster %q: %w", h.cluster.Name, err)
	}
	return nil
}

// has says whether all of these were seen as they are, or later. A watch brings the changes of an object in their order.
func (h *History) has(all []client.Object) (bool, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	newest := map[types.UID]uint64{}
	for _, one := range h.stored {
		newest[one.object.GetUID()] = max(newest[one.object.GetUID()], one.order)
	}
	for _, one := range all {
		order, err := strconv.ParseUint(one.GetResourceVersion(), 10, 64)
		if err != nil {
			return false, fmt.Errorf("reading the version of an object: %w", err)
		}
		if newest[one.GetUID()] < order {
			return false, h.trouble
		}
	}
	return true, h.trouble
}

// Replay has each state seen, from the first that has a control plane and workers; an error ends it, and is returned. While something is
// going on, the last states may lack what another watch has yet to bring: Complete first where the order counts.
func (h *History) Replay(see func(Progress) error) error {
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
		t.now.Gates[item] = gateOf(object)
		if one.isGone {
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
		holds := HoldsOf(object)
		t.now.Hook, t.now.Held = holds.Hook, holds.Workers
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
