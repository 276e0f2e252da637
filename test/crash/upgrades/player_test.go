package upgrades_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/test/clusterapi"
)

const (
	// turnEvery is how often the player looks, and takes is how long an installation is on its way: Cluster API has looked several times
	// by then.
	turnEvery = 100 * time.Millisecond
	takes     = 500 * time.Millisecond
)

// player plays, for one subject, Cluster API, a provider whose versions turn in status only, and the installation controller. It moves
// nothing while a hold is on, moves at once where none is, and complains where a gate is not as it has to be then.
type player struct {
	*subject
	marks *mergedcatalogue.Marks

	mutex      sync.Mutex
	complaints []string
	trouble    error
	// since is when an installation began what it is on now.
	since map[string]time.Time
	// isStuck says that no installation gets Ready any more.
	isStuck bool
	// slack is how far apart two leaders may take a stage to begin.
	slack   time.Duration
	changes changes
}

// play plays until the end of the test.
func play(t *testing.T, s *subject) *player {
	t.Helper()
	p := &player{subject: s, marks: mergedcatalogue.New(logr.Discard()), since: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	p.follow(ctx, t, &running)
	running.Go(func() {
		for ctx.Err() == nil {
			if err := p.turn(ctx); ctx.Err() == nil && !apierrors.IsConflict(err) { // what was read was old: it is looked at again
				p.mutex.Lock()
				p.trouble = err
				p.mutex.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(turnEvery):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if t.Failed() {
			t.Logf("what was complained of: %q", p.reported())
		}
	})
	return p
}

func (p *player) complain(format string, arguments ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.complaints = append(p.complaints, fmt.Sprintf(format, arguments...))
}

// failure is what the player can't do.
func (p *player) failure() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.trouble
}

// reported is what the player complained of.
func (p *player) reported() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string{}, p.complaints...)
}

// stick has all installations stay on their way from now on.
func (p *player) stick() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isStuck = true
}

// share has two processes lead, each of which sees for itself when a stage begins.
func (p *player) share(slack time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.slack = slack
}

// turn is one look. Cluster API comes first: what is let go too early is seen before an installation gets further.
func (p *player) turn(ctx context.Context) error {
	if err := p.upgrade(ctx); err != nil {
		return fmt.Errorf("playing Cluster API: %w", err)
	}
	if err := p.install(ctx); err != nil {
		return fmt.Errorf("playing installations: %w", err)
	}
	return nil
}

// upgrade makes one step of an upgrade, as Cluster API would.
func (p *player) upgrade(ctx context.Context) error {
	found, plane := object(clusterapi.ClusterKind, p.key), object(clusterapi.ControlPlaneKind, p.key)
	if err := errors.Join(p.client.Get(ctx, p.key, found), p.client.Get(ctx, p.key, plane)); err != nil {
		return err
	}
	wanted, _, _ := unstructured.NestedString(found.Object, "spec", "topology", "version")
	asked, _, _ := unstructured.NestedString(plane.Object, "spec", "version")
	now := versionsOf(found)
	switch {
	case asked != wanted && isHooked(found):
		return nil
	case asked != wanted:
		if err := p.lack(ctx, map[string]string{network: bridging, storage: bridging}, ""); err != nil && !p.stuck() {
			p.complain("the control plane was let go although %v", err)
		}
		return p.change(ctx, plane, wanted, "spec", "version")
	case len(now) == 1 && now[0] != wanted:
		return p.status(ctx, found, now[0], wanted)
	case len(now) == 2:
		return p.status(ctx, found, wanted)
	}
	return errors.Join(p.upgradePools(ctx, found, clusterapi.MachineDeploymentKind, "machineDeployments", wanted),
		p.upgradePools(ctx, found, clusterapi.MachinePoolKind, "machinePools", wanted))
}

// upgradePools moves the templates of one kind of pools, in their order, up to the first that is held.
func (p *player) upgradePools(ctx context.Context, of *unstructured.Unstructured, kind schema.GroupVersionKind, list, wanted string) error {
	pools, _, _ := unstructured.NestedSlice(of.Object, "spec", "topology", "workers", list)
	for _, one := range pools {
		fields, _ := one.(map[string]any)
		if _, isHeld, _ := unstructured.NestedString(fields, "metadata", "annotations", clusterapi.HoldSequence); isHeld {
			return nil
		}
		name, _ := fields["name"].(string)
		key := types.NamespacedName{Namespace: p.key.Namespace, Name: clusterName + "-" + name}
		pool := object(kind, key)
		if err := p.client.Get(ctx, key, pool); err != nil {
			return err
		}
		has, _, _ := unstructured.NestedString(pool.Object, "spec", "template", "spec", "version")
		if has == wanted {
			continue
		}
		right := map[string]string{network: bridging, storage: last}
		if err := p.lack(ctx, right, strings.TrimPrefix(wanted, "v")); err != nil && !p.stuck() {
			p.complain("workers %s were let go although %v", name, err)
		}
		if err := p.change(ctx, pool, wanted, "spec", "template", "spec", "version"); err != nil {
			return err
		}
	}
	return nil
}

// stuck says whether no installation gets Ready any more: then it may be left behind.
func (p *player) stuck() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.isStuck
}

func (p *player) change(ctx context.Context, one *unstructured.Unstructured, version string, path ...string) error {
	if err := unstructured.SetNestedField(one.Object, version, path...); err != nil {
		return err
	}
	return p.client.Update(ctx, one)
}

func (p *player) status(ctx context.Context, of *unstructured.Unstructured, all ...string) error {
	if err := unstructured.SetNestedSlice(of.Object, versions(all...), "status", "controlPlane", "versions"); err != nil {
		return err
	}
	return p.client.Status().Update(ctx, of)
}

// lack says what the gates lack to be Ready at these versions; a gate in a range, which says for which version of Kubernetes it was made,
// has to be made for that one too, where one is given.
func (p *player) lack(ctx context.Context, want map[string]string, kubernetes string) error {
	var list v1.AddonInstallationList
	if err := p.client.List(ctx, &list, client.InNamespace(p.key.Namespace)); err != nil {
		return err
	}
	if len(list.Items) != len(want) {
		return fmt.Errorf("there are %d gates", len(list.Items))
	}
	for _, one := range list.Items {
		applied := one.Status.LastApplied
		switch {
		case !installation.IsReady(&one) || applied == nil:
			return fmt.Errorf("%s is not Ready", one.Name)
		case one.Status.Version != want[one.Name]:
			return fmt.Errorf("%s is at %s", one.Name, one.Status.Version)
		case one.Name == storage && kubernetes != "" && applied.K8sVersion != kubernetes:
			return fmt.Errorf("%s was made for Kubernetes %s", one.Name, applied.K8sVersion)
		}
	}
	return nil
}

// install has each installation come to what the product's own rules choose for it.
func (p *player) install(ctx context.Context) error {
	of, err := p.live.Live(ctx, p.ref())
	if err != nil {
		return err
	}
	var list v1.AddonInstallationList
	if err := p.client.List(ctx, &list, client.InNamespace(p.key.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if err := p.installOne(ctx, &list.Items[i], of); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) installOne(ctx context.Context, one *v1.AddonInstallation, of target.Description) error {
	entry, err := p.marks.Entry(ctx, p.client, client.ObjectKey{Namespace: p.catalogue, Name: string(one.Spec.AddonRef.Name)})
	if err != nil {
		return err
	}
	choice, refusal := resolution.Request{Installation: one, Installed: resolution.InstalledInStatus(one), Cluster: of}.Choose(entry)
	if refusal != nil {
		return fmt.Errorf("%s: %w", one.Name, refusal)
	}
	applied := one.Status.LastApplied
	isPinned := one.Spec.AddonRef.Digest != ""
	isThere := applied != nil && applied.Version == choice.Version.Version && (isPinned || applied.K8sVersion == of.KubernetesVersion)
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	if !isThere || ready == nil || ready.ObservedGeneration != one.Generation {
		p.since[one.Name] = time.Now()
		one.Status.Version = choice.Version.Version
		one.Status.LastApplied = &v1.AppliedState{
			Addon: string(one.Spec.AddonRef.Name), Version: choice.Version.Version, K8sVersion: of.KubernetesVersion,
		}
		return p.say(ctx, one, metav1.ConditionFalse, v1.ReasonProgressing)
	}
	if ready.Status == metav1.ConditionTrue || p.stuck() || time.Since(p.since[one.Name]) < takes {
		return nil
	}
	return p.say(ctx, one, metav1.ConditionTrue, v1.ReasonReady)
}

func (p *player) say(ctx context.Context, one *v1.AddonInstallation, status metav1.ConditionStatus, reason string) error {
	meta.SetStatusCondition(&one.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: one.Generation,
	})
	return p.client.Status().Update(ctx, one)
}

// pool is what Cluster API made of a pool of the topology.
func (s *subject) pool(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	made := object(kind, types.NamespacedName{Namespace: s.key.Namespace, Name: clusterName + "-" + name})
	label := "topology.cluster.x-k8s.io/deployment-name"
	if kind == clusterapi.MachinePoolKind {
		label = "topology.cluster.x-k8s.io/pool-name"
	}
	made.SetLabels(map[string]string{clusterapi.Group + "/cluster-name": clusterName, label: name})
	reference := func(group, kind string) map[string]any {
		return map[string]any{"apiGroup": group, "kind": kind, "name": name}
	}
	made.Object["spec"] = map[string]any{
		"clusterName": clusterName, "selector": map[string]any{"matchLabels": map[string]any{"pool": name}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"pool": name}},
			"spec": map[string]any{
				"clusterName": clusterName, "version": before,
				"bootstrap":         map[string]any{"configRef": reference(clusterapi.BootstrapGroup, "FleetConfig")},
				"infrastructureRef": reference(clusterapi.InfrastructureGroup, "FleetMachine"),
			},
		},
	}
	if kind == clusterapi.MachinePoolKind {
		unstructured.RemoveNestedField(made.Object, "spec", "selector")
	}
	return made
}

// object is an empty one.
func object(kind schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(key.Namespace)
	made.SetName(key.Name)
	return made
}

func versions(all ...string) (listed []any) {
	for _, one := range all {
		listed = append(listed, map[string]any{"version": one, "replicas": int64(1)})
	}
	return listed
}

func versionsOf(found *unstructured.Unstructured) []string {
	return clusterapi.ControlPlane(found, "versions")
}

// isHooked says whether anybody keeps an upgrade of a Cluster from beginning.
func isHooked(found *unstructured.Unstructured) bool {
	for name := range found.GetAnnotations() {
		if strings.HasPrefix(name, clusterapi.BeforeUpgrade+"/") {
			return true
		}
	}
	return false
}
