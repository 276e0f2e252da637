package addoninstallation_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// slow has ConfigMap settings, and a ReplicaSet that is not ready until a test scales it to zero: nothing runs its
// pods.
const slow = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {version: '{{ .Variables.version }}'}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: {{ .Variables.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// publishSlow offers an add-on that is not ready when it is applied.
func (w *world) publishSlow(name string, kind kubermaticv1.CatalogueType, slot kubermaticv1.Slot, versions ...string) {
	w.t.Helper()
	addon := kubermaticv1.Addon{Name: kubermaticv1.AddonName(name), Slot: slot}
	for _, version := range versions {
		addon.Versions = append(addon.Versions, w.slowly(version, 1))
	}
	w.publishAddon(kind, addon)
}

// slowly is a version that is healthy once a test scales it to zero. A version without a change keeps the scale.
func (w *world) slowly(version string, replicas int) kubermaticv1.AddonVersion {
	w.t.Helper()
	made := w.content(version, kubermaticv1.MethodGoTemplate, "slow", map[string]string{"all.yaml": slow})
	made.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q,"replicas":%d}`, version, replicas)}
	return made
}

// request creates an installation that depends on others.
func (w *world) request(name, addon, version string, dependsOn ...string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(w.namespace, name, addon, w.unique(name), given.In(version), given.NewNamespace)
	object.Spec.DependsOn = namesOf(dependsOn)
	w.create(object)
	return object
}

func namesOf(texts []string) (names []kubermaticv1.InstallationName) {
	for _, text := range texts {
		names = append(names, kubermaticv1.InstallationName(text))
	}
	return names
}

func (w *world) dependOn(object *kubermaticv1.AddonInstallation, names ...string) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.DependsOn = namesOf(names) })
}

// scale makes an add-on of publishSlow ready, or not.
func (w *world) scale(object *kubermaticv1.AddonInstallation, replicas int32) {
	w.t.Helper()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "web"}}
	expect.Eventually(w.t, expect.Patience, func() error {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		return w.seed.SubResource("scale").Update(w.t.Context(), set, client.WithSubResourceBody(scale))
	})
}

// expectReplicas waits until a version with that many replicas was applied.
func (w *world) expectReplicas(object *kubermaticv1.AddonInstallation, replicas int32) {
	w.t.Helper()
	set := &appsv1.ReplicaSet{}
	expect.Eventually(w.t, expect.Patience, func() error {
		key := client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "web"}
		if err := w.seed.Get(w.t.Context(), key, set); err != nil || *set.Spec.Replicas == replicas {
			return err
		}
		return fmt.Errorf("%s has %d replicas, wanted %d", object.Name, *set.Spec.Replicas, replicas)
	})
}

// expectHeld waits until an installation waits for its turn, with all of these words in the message.
func (w *world) expectHeld(object *kubermaticv1.AddonInstallation, reason string, words ...string) {
	w.t.Helper()
	w.expectReady(object, reason, words...)
	if err := expect.Condition(object, kubermaticv1.ConditionApplied, "False", reason); err != nil {
		w.t.Error(err)
	}
}

// expectNotBegun checks that nothing of an installation was rendered, and nothing is in the user cluster.
func (w *world) expectNotBegun(objects ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	for _, object := range objects {
		expect.Read(w.t, w.seed, object)
		if meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionRendered) != nil || object.Status.LastApplied != nil {
			w.t.Errorf("%s has begun: %+v", object.Name, object.Status)
		}
		if w.has(&corev1.Namespace{}, "", object.Spec.TargetNamespace) {
			w.t.Errorf("%s has a namespace in the user cluster", object.Name)
		}
	}
}

// TestTheNetworkComesBeforeTheRest fails if add-ons without a slot do not wait for slots, or wait for others than those
// (bySlot returns none); if add-ons with a slot wait until the previous one is Ready; if slots of Core catalogues don't
// count, or if an add-on that progressed far enough wakes no waiting installation (the watch of ofAwaited taken out).
func TestTheNetworkComesBeforeTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publishSlow("cni", kubermaticv1.CatalogueCore, kubermaticv1.SlotCNI, "1.0.0")
	w.publishSlow("system", kubermaticv1.CatalogueCustom, kubermaticv1.SlotSystem, "1.0.0")
	w.publish("rest", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	rest, system := w.request("rest", "rest", ""), w.request("system", "system", "")
	cni := given.Installation(w.namespace, "cni", "cni", w.unique("cni"), given.In("2.0.0"), given.NewNamespace, given.Core)
	w.create(cni)
	w.start()
	w.expectReady(cni, kubermaticv1.ReasonVersionUnknown)
	w.expectHeld(system, kubermaticv1.ReasonWaitingForOrder, `installation "cni"`, "earlier slot", "after 10m0s")
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `waits for installation "`)
	w.expectNotBegun(system, rest)

	w.want(cni, "1.0.0")
	w.expectReady(cni, kubermaticv1.ReasonProgressing)
	w.expectReady(system, kubermaticv1.ReasonProgressing) // the network is Applied
	w.expectNotBegun(rest)
	w.scale(cni, 0)
	w.expectReady(cni, kubermaticv1.ReasonReady)
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `installation "system"`, "earlier slot")
	w.expectNotBegun(rest)
	w.scale(system, 0)
	w.expectInstalled(rest, "1.0.0", "")
	w.expectEvents(rest, "Normal Applied")

	// Applied add-ons without a slot are not held by later changes.
	w.scale(system, 1)
	w.lookAgain(system) // the next comparison, up to a minute away, reads the health
	w.expectReady(system, kubermaticv1.ReasonProgressing)
	w.edit(rest, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"version":"mine"}`)}
	})
	expect.Eventually(t, expect.Patience, func() error {
		if have := w.installed(rest); have != "mine" {
			return fmt.Errorf("the settings have %q", have)
		}
		return nil
	})
}

// TestWhatDoesNotCountForASlot fails if add-ons without a slot still wait although the awaited one is paused, or no
// longer has a slot (ofCatalogue without those that wait).
func TestWhatDoesNotCountForASlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publishSlow("cni", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCNI, "1.0.0")
	w.publishSlow("csi", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCSI, "1.0.0")
	w.publish("rest", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	cni, csi, rest := w.request("cni", "cni", ""), w.request("csi", "csi", ""), w.request("rest", "rest", "")
	w.start()
	w.expectReady(cni, kubermaticv1.ReasonProgressing)
	w.expectReady(csi, kubermaticv1.ReasonProgressing)
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `"cni"`)
	w.edit(cni, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `waits for installation "csi", which`)
	w.publishSlow("csi", kubermaticv1.CatalogueCustom, "", "1.0.0")
	w.expectInstalled(rest, "1.0.0", "")
}

// TestACircleIsReported fails if members of a circle are applied, or not named; if its end wakes no installation; if one
// that only depends on a member counts as a member; or if a circle holds applied add-ons (BeforeVersion by the rules of
// BeforeFirstApply).
func TestACircleIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	a, b := w.request("a", "plain", "1.0.0", "b"), w.request("b", "plain", "1.0.0", "c")
	c, d := w.request("c", "plain", "1.0.0", "a"), w.request("d", "plain", "1.0.0", "a")
	w.start()
	w.expectHeld(a, kubermaticv1.ReasonDependencyCycle, "a → b → c → a", "spec.dependsOn")
	w.expectHeld(b, kubermaticv1.ReasonDependencyCycle, "b → c → a → b")
	w.expectHeld(c, kubermaticv1.ReasonDependencyCycle, "c → a → b → c")
	w.expectHeld(d, kubermaticv1.ReasonWaitingForOrder, `installation "a"`, "depends on", "Ready")
	w.expectNotBegun(a, b, c, d)
	w.expectEvents(a, "Warning DependencyCycle")
	w.dependOn(c)
	for _, object := range []*kubermaticv1.AddonInstallation{c, b, a, d} {
		w.expectInstalled(object, "1.0.0", "2.0.0")
	}
	w.dependOn(c, "a")
	for _, object := range []*kubermaticv1.AddonInstallation{a, b, c} {
		w.want(object, "2.0.0")
	}
	for _, object := range []*kubermaticv1.AddonInstallation{a, b, c} {
		w.expectInstalled(object, "2.0.0", "")
	}
}

// TestAMissingDependencyComesLater fails if a missing dependency holds nothing, or wakes nothing when it is created, or
// holds another version of an applied add-on.
func TestAMissingDependencyComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	web := w.request("web", "plain", "1.0.0", "db", "mq")
	w.expectHeld(web, kubermaticv1.ReasonDependencyMissing,
		`depends on installation "db", "mq", which this cluster does not have: create it, or remove it from spec.dependsOn`)
	w.expectNotBegun(web)
	db := w.request("db", "plain", "1.0.0")
	w.expectHeld(web, kubermaticv1.ReasonDependencyMissing, `depends on installation "mq", which`)
	mq := w.request("mq", "plain", "1.0.0")
	w.expectInstalled(web, "1.0.0", "2.0.0")
	w.deleteAll(db, mq)
	expect.Gone(t, w.seed, db)
	expect.Gone(t, w.seed, mq)
	w.want(web, "2.0.0")
	w.expectInstalled(web, "2.0.0", "")
}

// TestAnotherVersionWaitsAndWhatIsThereIsLookedAfter fails if another version does not wait, if the installed one is
// not maintained meanwhile (maintain without IsHeld), or if the end of the wait wakes no installation.
func TestAnotherVersionWaitsAndWhatIsThereIsLookedAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driftInterval = time.Second
	w.publish("db", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	db, web := w.request("db", "db", ""), w.request("web", "plain", "1.0.0", "db")
	pause := func(isPaused bool) {
		w.edit(db, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = isPaused })
	}
	pause(true)
	w.start()
	w.expectHeld(web, kubermaticv1.ReasonWaitingForOrder, `installation "db"`, "depends on", "Ready with its desired version")
	pause(false)
	w.expectInstalled(web, "1.0.0", "2.0.0")

	pause(true)
	w.expectReady(db, kubermaticv1.ReasonPaused)
	w.want(web, "2.0.0")
	w.expectHeld(web, kubermaticv1.ReasonWaitingForOrder, "after 10m0s")
	if web.Status.Version != "1.0.0" || web.Status.Target != "2.0.0" || !meta.IsStatusConditionTrue(web.Status.Conditions, kubermaticv1.ConditionHealthy) {
		t.Errorf("the status is %+v", web.Status)
	}
	w.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: web.Spec.TargetNamespace, Name: "settings"}})
	expect.Eventually(t, expect.Patience, func() error {
		if have := w.installed(web); have != "1.0.0" {
			return fmt.Errorf("the settings have %q", have)
		}
		return nil
	})
	pause(false)
	w.expectReady(db, kubermaticv1.ReasonReady)
	w.expectInstalled(web, "2.0.0", "")
}

// TestWhatMovesWithItsDependencyComesAfterIt fails if both change at once although one depends on the other
// (isAboutToMove returns false): the dependent is reconciled first, and finds its dependency Ready with the previous
// version.
func TestWhatMovesWithItsDependencyComesAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.concurrency = 1
	later := &kubermaticv1.Constraints{K8sVersion: ">= 1.37"}
	slowly := kubermaticv1.Addon{Name: "base", Versions: []kubermaticv1.AddonVersion{w.slowly("1.0.0", 1), w.slowly("2.0.0", 2)}}
	slowly.Versions[1].Constraints = later
	w.publishAddon(kubermaticv1.CatalogueCustom, slowly)
	w.publish("top", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0", k8s: string(later.K8sVersion)})
	base, top := w.request("z-base", "base", ""), w.request("a-top", "top", "", "z-base")
	w.start()
	w.scale(base, 0)
	w.expectInstalled(top, "1.0.0", "")
	w.running("v1.37.0")
	w.expectHeld(top, kubermaticv1.ReasonWaitingForOrder, `installation "z-base"`, "depends on")
	if top.Status.Version != "1.0.0" {
		t.Errorf("top has version %s", top.Status.Version)
	}
	w.expectReplicas(base, 2) // scaled before, its other version would undo that
	w.scale(base, 0)
	w.expectInstalled(top, "2.0.0", "")
}

// TestOrderIsGivenUp fails if slots are awaited without end, if that is not reported, or reported again; and the same
// for another version of an add-on with dependencies.
func TestOrderIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock, w.orderTimeout = kit.RunningClock(t), 10*time.Second
	w.publishSlow("cni", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCNI, "1.0.0")
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	cni, rest := w.request("cni", "cni", ""), w.request("rest", "plain", "1.0.0")
	w.start()
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `installation "cni"`, "earlier slot", "after 10s")
	w.hurry(50, func() { w.expectInstalled(rest, "1.0.0", "2.0.0") })
	w.expectEvents(rest, "Warning OrderGivenUp", "Normal Applied")
	w.expectEvent(kubermaticv1.EventOrderGivenUp, rest, "after 10s although", `"cni"`, "earlier slot")

	w.dependOn(rest, "cni")
	w.want(rest, "2.0.0")
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `installation "cni"`, "depends on")
	w.hurry(50, func() { w.expectInstalled(rest, "2.0.0", "") })
	w.expectEvents(rest, "Warning OrderGivenUp", "Normal Applied", "Warning OrderGivenUp", "Normal Applied")

	web := w.request("web", "plain", "1.0.0", "cni") // a first apply waits without a limit
	w.expectHeld(web, kubermaticv1.ReasonWaitingForOrder, `"cni"`)
	w.clock.Step(2 * w.orderTimeout)
	w.afterAnother(web)
	w.expectHeld(web, kubermaticv1.ReasonWaitingForOrder, `"cni"`)
	w.expectNotBegun(web)
	w.scale(cni, 0)
	w.expectInstalled(web, "1.0.0", "2.0.0")
}

// TestAWaitOutlivesARestart fails if a new process restarts the wait (waited returns 0): nothing would be applied for
// another ten minutes.
func TestAWaitOutlivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock = kit.RunningClock(t)
	w.publishSlow("cni", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCNI, "1.0.0")
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.request("cni", "cni", "")
	rest := w.request("rest", "plain", "")
	stop := w.startUntil()
	t.Cleanup(stop)
	w.expectHeld(rest, kubermaticv1.ReasonWaitingForOrder, `"cni"`)
	stop()
	w.clock.Step(10 * time.Minute)
	w.start()
	w.expectInstalled(rest, "1.0.0", "")
}

// A condition says that the wait began an hour in the future: the clock was set back since. It fails if that hour is
// waited too, before an apply or before a removal.
func TestAWaitThatBeginsInTheFutureIsOver(t *testing.T) {
	t.Parallel()
	later := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	say := func(w *world, object *kubermaticv1.AddonInstallation, kind, reason string) {
		t.Helper()
		expect.ChangeStatus(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) {
			meta.RemoveStatusCondition(&object.Status.Conditions, kind)
			meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "by another clock", LastTransitionTime: later,
			})
		})
	}
	t.Run("an apply", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.publishSlow("cni", kubermaticv1.CatalogueCustom, kubermaticv1.SlotCNI, "1.0.0")
		w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
		w.request("cni", "cni", "")
		rest := w.request("rest", "plain", "")
		say(w, rest, kubermaticv1.ConditionApplied, kubermaticv1.ReasonWaitingForOrder)
		w.start()
		w.expectInstalled(rest, "1.0.0", "")
		w.expectEvents(rest, "Warning OrderGivenUp", "Normal Applied")
	})
	t.Run("a removal", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		web, db, _, stop := w.reversedUntil()
		stop()
		w.deleteAll(web, db)
		say(w, db, kubermaticv1.ConditionDeletionBlocked, kubermaticv1.ReasonRemoving)
		w.start()
		expect.Gone(t, w.seed, db)
		w.expectEvents(db, "Normal Applied", "Warning OrderGivenUp", "Normal Removed")
		w.hold(web, false)
	})
}

const finalizerOfTest = "test.example.com/hold"

// hold makes an installation stay although it is removed from the user cluster.
func (w *world) hold(object *kubermaticv1.AddonInstallation, isHeld bool) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		if isHeld {
			controllerutil.AddFinalizer(object, finalizerOfTest)
			return
		}
		controllerutil.RemoveFinalizer(object, finalizerOfTest)
	})
}

// reversed are three Ready installations: web depends on db, and cni has a slot; web stays after its deletion.
func (w *world) reversed() (web, db, cni *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	web, db, cni, _ = w.reversedUntil()
	return web, db, cni
}

// reversedUntil runs the controller until the returned function is called, at the latest at the end of the test.
func (w *world) reversedUntil() (web, db, cni *kubermaticv1.AddonInstallation, stop func()) {
	w.t.Helper()
	w.publishAddon(kubermaticv1.CatalogueCustom, kubermaticv1.Addon{
		Name: "cni", Slot: kubermaticv1.SlotCNI, Versions: []kubermaticv1.AddonVersion{w.version(offered{version: "1.0.0"})},
	})
	w.publish("plain", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	cni, db, web = w.request("cni", "cni", ""), w.request("db", "plain", ""), w.request("web", "plain", "", "db")
	stop = w.startUntil()
	w.t.Cleanup(stop)
	for _, object := range []*kubermaticv1.AddonInstallation{web, db, cni} {
		w.expectInstalled(object, "1.0.0", "")
	}
	w.hold(web, true)
	return web, db, cni, stop
}

// TestRemovalsGoInReverse fails if a removal does not wait for its dependents, or for later slots; if it waits for
// installations that stay; if the end of the awaited ones does not wake it; or if the wait is not reported.
func TestRemovalsGoInReverse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web, db, cni := w.reversed()
	w.deleteAll(web, db, cni)
	w.expectReady(db, kubermaticv1.ReasonWaitingForOrder,
		`removal of installation "web"`, "later slot", "after 10m0s")
	w.expectReady(cni, kubermaticv1.ReasonWaitingForOrder, `removal of installation "`)
	for _, object := range []*kubermaticv1.AddonInstallation{db, cni} {
		if w.installed(object) != "1.0.0" {
			t.Errorf("%s is removed already", object.Name)
		}
	}
	w.hold(web, false)
	for _, object := range []*kubermaticv1.AddonInstallation{web, db, cni} {
		expect.Gone(t, w.seed, object)
	}
}

// TestRemovalsWaitNoLongerThanTheyMay fails if a removal waits forever, or although its cluster is being deleted.
func TestRemovalsWaitNoLongerThanTheyMay(t *testing.T) {
	t.Parallel()
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.clock, w.orderTimeout = kit.RunningClock(t), 20*time.Minute
		web, db, cni := w.reversed()
		w.deleteAll(web, db)
		w.expectReady(db, kubermaticv1.ReasonWaitingForOrder)
		w.clock.Step(w.orderTimeout)
		w.lookAgain(db)
		expect.Gone(t, w.seed, db)
		w.expectEvent(kubermaticv1.EventOrderGivenUp, db) // a blocked removal may be reported too, since it began long ago
		w.expectEvent(kubermaticv1.EventRemoved, db)
		w.delete(cni) // by the controller's clock, that was long ago
		expect.Gone(t, w.seed, cni)
		w.hold(web, false)
	})
	t.Run("the cluster goes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		web, db, _ := w.reversed()
		w.deleteAll(web, db)
		w.expectReady(db, kubermaticv1.ReasonWaitingForOrder)
		w.delete(w.cluster)
		expect.Gone(t, w.seed, db)
		w.hold(web, false)
	})
}
