package clusterupgrade_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// perRelease makes the copy of a set for one minor release of Kubernetes.
func (w *world) perRelease(name, kubernetes, version string) {
	w.t.Helper()
	expect.Create(w.t, w.client, &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name, Labels: map[string]string{v1.LabelRole: v1.RoleCopy}},
		Spec: v1.AddonSetSpec{
			ClusterSelector: &metav1.LabelSelector{}, Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(kubernetes)},
			Addons: []v1.AddonSetItem{{
				Name: "cni", AddonRef: v1.AddonReference{Name: "cni", Version: version}, TargetNamespace: "kube-system",
			}},
		},
	})
}

// pause a copy, or let it go on.
func (w *world) pause(name string, is bool) {
	w.t.Helper()
	found := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
	expect.Change(w.t, w.client, found, func(found *v1.AddonSet) { found.Spec.Paused = is }) // its controller writes it too
}

// made waits until a set has the add-on at a version, and gives it.
func (w *world) made(by, version string) *v1.AddonInstallation {
	w.t.Helper()
	one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: "one.cni"}}
	return expect.Object(w.t, w.client, one, func(found *v1.AddonInstallation) error {
		if got := found.Labels[v1.LabelSet] + " " + found.Spec.AddonRef.Version; got != by+" "+version {
			return fmt.Errorf("it is of %s", got)
		}
		return nil
	})
}

// A set per minor release: the one of the next version takes the add-on over before the control plane moves, at once and in place, and the
// upgrade goes on since all is right, not by its timeout. While that set is paused the condition says so. Red where sets go by the version
// above alone, where what is asked for after the upgrade is taken from the set before it, and where who is paused is not named.
func TestASetPerReleaseUpgradesWithoutItsTimeout(t *testing.T) {
	w := newWorld(t, setting{})
	w.perRelease("release-36", "~1.36", "1.0.0")
	w.perRelease("release-37", "~1.37", "1.1.0")
	w.pause("release-37", true)
	w.startAll()
	first := w.made("release-36", "1.0.0")
	w.installed("1.0.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)

	w.ask(after)
	w.reported(v1.ReasonBeforeControlPlane, "one.cni (moves to 1.1.0", `AddonSet "release-37" is paused`, "spec.paused")
	w.pause("release-37", false)
	early := w.made("release-37", "1.1.0")
	if early.UID != first.UID {
		t.Error("it was made anew")
	}
	w.stays(before, before)
	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.at(after, after) // what is pinned, and fits, holds no workers
	w.says("False", v1.ReasonNotUpgrading)
	last := w.made("release-37", "1.1.0")
	if last.UID != first.UID || last.Annotations[v1.AnnotationMoved] != early.Annotations[v1.AnnotationMoved] {
		t.Errorf("it moved twice, or was made anew: %v, and then %v", early.ObjectMeta, last.ObjectMeta)
	}
}

// plays has every installation of the Cluster be, soon, what it is pinned to, until the end of the test.
func (w *world) plays() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	w.t.Cleanup(func() {
		cancel()
		playing.Wait()
	})
	changes, err := w.client.Watch(ctx, &v1.AddonInstallationList{}, client.InNamespace(w.key.Namespace))
	expect.NoError(w.t, err)
	playing.Go(func() {
		defer changes.Stop()
		for change := range changes.ResultChan() {
			one, isOne := change.Object.(*v1.AddonInstallation)
			if !isOne || one.Spec.AddonRef.Version == "" || one.Status.ObservedGeneration == one.Generation {
				continue
			}
			ref := one.Spec.AddonRef
			one.Status.ObservedGeneration, one.Status.Version = one.Generation, ref.Version
			one.Status.LastApplied = &v1.AppliedState{Addon: string(ref.Name), Version: ref.Version, EntryDigest: ref.Digest}
			one.Status.Conditions = []metav1.Condition{{
				Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady, ObservedGeneration: one.Generation,
				LastTransitionTime: metav1.Now(),
			}}
			if err := w.client.Status().Update(ctx, one); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) { // which another event follows
				w.t.Error(err)
			}
		}
	})
}

// One version a minor release, by a set per release and by a Core set over a list whose range leaves out what would fit both: nothing has
// to move before the control plane, workers wait until both have brought what is next, and no stage runs to its timeout. While the Core set
// is paused the condition says so. Red where what is asked for after the upgrade is taken from the set before it, or from no item of the
// list: the control plane waits to its timeout for what never comes.
func TestOneVersionPerReleaseHoldsTheWorkersAlone(t *testing.T) {
	w := newWorld(t, setting{})
	w.perRelease("release-36", "~1.36", "1.0.0")
	w.perRelease("release-37", "~1.37", "2.0.0")
	expect.Create(t, w.client, w.merged("cloud", v1.SlotCPI, "1.36.0", "~1.36", "1.37.0", "~1.37", "2.0.0", ">= 1.36"),
		given.CoreList(w.catalogue, "- {name: cloud, addonRef: {name: cloud, version: 1.x}, targetNamespace: kube-system}\n"),
		&v1.AddonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "core", Labels: map[string]string{v1.LabelRole: v1.RoleCopy}},
			Spec:       v1.AddonSetSpec{Type: v1.AddonSetCore, ClusterSelector: &metav1.LabelSelector{}, Rollout: &v1.Rollout{}},
		})
	w.plays()
	w.startAll()
	first := w.made("release-36", "1.0.0")
	w.isOf("cloud", "1.36.0")
	w.says("False", v1.ReasonNotUpgrading)

	w.pause("core", true)
	w.ask(after)
	w.reported(v1.ReasonBeforeWorkers, "one.cloud (version 1.36.0", `AddonSet "core" is paused`)
	w.at(after, before)
	w.pause("core", false)
	if next := w.made("release-37", "2.0.0"); next.UID != first.UID {
		t.Error("it was made anew")
	}
	w.isOf("cloud", "1.37.0")
	w.at(after, after)
	w.says("False", v1.ReasonNotUpgrading)
}

// isOf waits until an add-on of the Cluster is there in a version.
func (w *world) isOf(item, version string) {
	w.t.Helper()
	one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: "one." + item}}
	expect.Object(w.t, w.client, one, func(found *v1.AddonInstallation) error {
		if found.Status.Version != version {
			return fmt.Errorf("it is at %q, and is to have %+v", found.Status.Version, found.Spec.AddonRef)
		}
		return nil
	})
}

// An upgrade over two minors: what breaks on its second step holds the first, since nothing holds between them. Then the control plane goes
// through both, workers once at the end, and the hook is back. Red where gates are judged by the next version alone, or by the last one
// before Cluster API has planned the steps, where a set takes the add-on while the control plane rolls, and where workers go in between.
func TestAChainOfUpgradesIsEvaluatedByAllItsSteps(t *testing.T) {
	var w *world
	var mutex sync.Mutex
	var steps []string
	fit := []string{"1.0.0", "~1.35", "1.1.0", ">= 1.35, < 1.37"}
	w = newWorld(t, setting{
		class: []string{oldest, before, after}, from: oldest, offered: fit,
		rolling: func(ctx context.Context, step clusterapi.Step) {
			one := &v1.AddonInstallation{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.key.Namespace, Name: "one.cni"}, one); err != nil {
				t.Error(err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			steps = append(steps, fmt.Sprintf("%s to %s with %s, %s", step.From, step.To, one.Labels[v1.LabelSet], one.Status.Version))
		},
	})
	w.perRelease("release-35", "~1.35", "1.0.0")
	w.perRelease("release-36", "~1.36", "1.1.0")
	w.perRelease("release-37", "~1.37", "2.0.0")
	w.plays()
	w.startAll()
	first := w.made("release-35", "1.0.0")
	w.says("False", v1.ReasonNotUpgrading)

	w.ask(after)
	w.reported(v1.ReasonBeforeControlPlane, "one.cni (", "1.37.1")
	w.made("release-36", "1.1.0")
	w.stays(oldest, oldest)
	w.offers(append(fit, "2.0.0", "~1.37")...)
	w.at(after, after)
	w.says("False", v1.ReasonNotUpgrading)
	if last := w.made("release-37", "2.0.0"); last.UID != first.UID {
		t.Error("it was made anew")
	}
	if _, isOn := w.read().GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; !isOn {
		t.Error("the hook is not put back")
	}
	mutex.Lock()
	defer mutex.Unlock()
	want := []string{"v1.35.4 to v1.36.3 with release-36, 1.1.0", "v1.36.3 to v1.37.1 with release-36, 1.1.0"}
	if !slices.Equal(steps, want) {
		t.Errorf("the control plane goes %q, want %q", steps, want)
	}
}
