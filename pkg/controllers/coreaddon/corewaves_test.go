package coreaddon_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// content offers one version of rbac, with content of this name.
func (w *world) content(name string) (*played, string) {
	w.t.Helper()
	entry := w.offered("rbac", [3]string{"1.0.0", name, ""})
	_, origin := entry.Version("1.0.0")
	return &played{w: w, entry: entry, newest: "1.0.0"}, origin.Content
}

func pinnedAt(content string) func(*v1.AddonInstallation) bool {
	return func(found *v1.AddonInstallation) bool { return found.Spec.AddonRef.Digest == content }
}

// settled has a set over so many clusters that is Complete with content a.
func (w *world) settled(size int, changes ...func(*v1.AddonSet)) (clusters []*kkpv1.Cluster, of *v1.AddonSet, first string) {
	w.t.Helper()
	player, first := w.content("a")
	clusters = w.clusters(size)
	w.start()
	w.everywhere(clusters, "rbac")
	player.play()
	of = w.coreSet(changes...)
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(first)); len(at) != size {
			return fmt.Errorf("%d are pinned", len(at))
		}
		return w.setSays(of, v1.ReasonComplete)
	})
	player.play()
	return clusters, of, first
}

// only checks that exactly these clusters have a content now, and still have after more reconciliations.
func (w *world) only(clusters []*kkpv1.Cluster, content string, want ...int) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if at := w.at(clusters, pinnedAt(content)); !slices.Equal(at, want) {
			return fmt.Errorf("%v have it, want %v", at, want)
		}
		return nil
	})
	w.steady(func() error {
		if at := w.at(clusters, pinnedAt(content)); !slices.Equal(at, want) {
			return fmt.Errorf("%v have it, want %v", at, want)
		}
		return nil
	})
}

const monitored = `
- name: monitoring
  addonRef: {name: net}
  targetNamespace: monitoring
  clusterSelector: {matchExpressions: [{key: out, operator: NotIn, values: ["yes"]}]}
`

// TestManyRemovalsOfCoreAddonsWaitForApproval: when the list changes, 2 of 10 installations are removed, and the
// other 8 wait for approval, with their protection. The test fails when they are removed at once, or when the
// approval doesn't allow it.
func TestManyRemovalsOfCoreAddonsWaitForApproval(t *testing.T) {
	w := newWorld(t)
	entry := w.offered("net", [3]string{"1.0.0", "a", ""})
	w.listed(monitored)
	clusters := w.clusters(10)
	w.start()
	w.everywhere(clusters, "monitoring")
	player := &played{w: w, entry: entry, newest: "1.0.0"}
	player.play()
	of := w.coreSet(atOnce)
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	for _, one := range clusters[:2] {
		expect.Change(w.t, w.seed, one, func(c *kkpv1.Cluster) { c.Labels["out"] = "yes" })
	}
	left := func() []v1.AddonInstallation {
		var list v1.AddonInstallationList
		expect.List(t, w.seed, &list, client.MatchingLabels{v1.LabelManagedBy: v1.ManagedByCoreAddons})
		return list.Items
	}
	player.until(func() error {
		if found := left(); len(found) != 8 {
			return fmt.Errorf("%d are left", len(found))
		}
		return w.setSays(of, v1.ReasonComplete)
	})
	w.listed("[]")
	player.until(func() error { return w.setSays(of, v1.ReasonRemovalNeedsApproval) })
	if removal := of.Status.Removal; removal == nil || removal.Count != 8 || removal.Word == "" {
		t.Fatalf("status.removal is %+v", removal)
	}
	if err := w.seed.Delete(t.Context(), installationOf(clusters[5], "monitoring")); err != nil { // its users can't bypass it
		t.Fatal(err)
	}
	w.steady(func() error {
		found := left()
		for i := range found {
			if !hasProtection(&found[i]) {
				return fmt.Errorf("%s lost its protection", found[i].Namespace)
			}
		}
		if len(found) != 8 {
			return fmt.Errorf("%d are left", len(found))
		}
		return nil
	})
	w.change(of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationRemovalApproved] = of.Status.Removal.Word })
	player.until(func() error {
		if found := left(); len(found) != 0 {
			return fmt.Errorf("%d are left", len(found))
		}
		return w.setSays(of, v1.ReasonComplete)
	})
}

// TestWhatALaterWaveRemovesIsProtectedUntilThen: the list no longer names an item. The test fails when a cluster's
// users remove it before its wave, when that fails the cluster, or when it is not removed with its wave.
func TestWhatALaterWaveRemovesIsProtectedUntilThen(t *testing.T) {
	w := newWorld(t)
	clusters := w.clusters(3)
	expect.Change(w.t, w.seed, clusters[0], func(c *kkpv1.Cluster) { c.Labels["ring"] = "0" })
	entry := w.offered("net", [3]string{"1.0.0", "a", ""})
	w.listed(monitored)
	w.start()
	w.everywhere(clusters, "monitoring")
	player := &played{w: w, entry: entry, newest: "1.0.0"}
	player.play()
	of := w.coreSet()
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	w.listed("[]")
	player.until(func() error { return w.setSays(of, v1.ReasonRemovalNeedsApproval) }) // no cluster keeps it
	for _, one := range clusters {
		expect.Read(t, w.seed, installationOf(one, "monitoring"))
	}
	w.change(of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationRemovalApproved] = of.Status.Removal.Word })
	expect.Gone(t, w.seed, installationOf(clusters[0], "monitoring"))
	expect.Delete(t, w.seed, installationOf(clusters[1], "monitoring"))
	w.steady(func() error {
		for _, one := range clusters[1:] {
			found := installationOf(one, "monitoring")
			if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil || !hasProtection(found) {
				return fmt.Errorf("it has the finalizers %v: %w", found.Finalizers, err)
			}
		}
		return nil
	})
	w.change(of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationGate] = rollout.GateValue(of.Status.Revision, 2) })
	for _, one := range clusters[1:] {
		expect.Gone(t, w.seed, installationOf(one, "monitoring"))
	}
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
}

// TestAClusterThatIsDownIsAway fails when a move is written to a cluster whose API server isn't up, or waits after it
// is up again.
func TestAClusterThatIsDownIsAway(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(2, ungrouped)
	health := func(state string) {
		before := clusters[1].DeepCopy()
		clusters[1].Status.ExtendedHealth.APIServer = state
		expect.PatchStatus(t, w.seed, clusters[1], client.MergeFrom(before))
	}
	health(kkpv1.HealthDown)
	player, second := w.content("b")
	player.until(func() error {
		if err := w.setSays(of, v1.ReasonComplete); err != nil {
			return err
		}
		if of.Status.Counts.Away != 1 || len(of.Status.Clusters) != 1 || of.Status.Clusters[0].Reason != v1.ReasonClusterNotReady {
			return fmt.Errorf("the status is %+v with %+v", of.Status.Counts, of.Status.Clusters)
		}
		return nil
	})
	w.only(clusters, second, 0)
	health(kkpv1.HealthUp)
	w.only(clusters, second, 0, 1)
}

// TestOfTwoCoreSetsTheOlderCounts fails when the age of copies on the seed counts, and not that of the sets.
func TestOfTwoCoreSetsTheOlderCounts(t *testing.T) {
	w := newWorld(t)
	w.start()
	younger := w.coreSet(named("younger"))
	expect.Eventually(t, expect.Patience, func() error { return w.setSays(younger, v1.ReasonComplete) })
	older := w.coreSet(named("zz-older"), func(of *v1.AddonSet) { of.Annotations[v1.AnnotationCreated] = "2025-01-01T00:00:00Z" })
	expect.Eventually(t, expect.Patience, func() error {
		if err := w.setSays(younger, v1.ReasonInvalid); err != nil {
			return err
		}
		return w.setSays(older, v1.ReasonComplete)
	})
}

// TestARolloutThatCantBeReadIsNotTaken: the last valid one continues, and a process without one changes nothing. The
// test fails when the invalid copy counts, or when nothing is written any longer.
func TestARolloutThatCantBeReadIsNotTaken(t *testing.T) {
	w := newWorld(t)
	player, first := w.content("a")
	clusters := w.clusters(3)
	expect.Change(w.t, w.seed, clusters[1], func(c *kkpv1.Cluster) { c.Labels["ring"] = "0" })
	stop := w.start()
	w.everywhere(clusters, "rbac")
	player.play()
	of := w.coreSet()
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	w.change(of, func(of *v1.AddonSet) {
		of.Spec.Rollout.Groups[0].ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	})
	player.until(func() error { return w.setSays(of, v1.ReasonInvalid) })
	player, second := w.content("b")
	player.play()
	w.only(clusters, second, 1)
	stop()

	w.start()
	_, third := w.content("c")
	edited := installationOf(clusters[2], "rbac")
	expect.Change(w.t, w.seed, edited, func(found *v1.AddonInstallation) { found.Labels[v1.LabelManagedBy] = "me" })
	w.exists(clusters[2], "rbac") // an edit is reverted
	if at := w.at(clusters, pinnedAt(first)); !slices.Equal(at, []int{0, 2}) {
		t.Errorf("%v are at what they had", at)
	}
	w.only(clusters, third)
	if err := w.setSays(of, v1.ReasonInvalid); err != nil {
		t.Error(err)
	}
}

// moves records which clusters are written, and may delay the writes.
type moves struct {
	mutex sync.Mutex
	seen  []string
}

func (m *moves) note(request *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.seen = append(m.seen, strings.Split(request.URL.Path, "/")[5])
}

func (m *moves) namespaces() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := slices.Clone(m.seen)
	slices.Sort(found)
	return slices.Compact(found)
}

// TestAPlaceIsHeldWhileItsClusterIsWritten: a write is under way while a new revision begins, and its answer is lost.
// The test fails when another cluster gets the place meanwhile.
func TestAPlaceIsHeldWhileItsClusterIsWritten(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(3, ungrouped)
	found, through := &moves{}, make(chan struct{})
	var others atomic.Bool
	answer := func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		found.note(request)
		if others.Swap(true) {
			return next.RoundTrip(request)
		}
		<-through
		if response, err := next.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
		return nil, fmt.Errorf("the answer is lost")
	}
	w.writes.answer.Store(&answer)
	w.content("b")
	expect.Eventually(t, expect.Patience, func() error {
		if len(found.namespaces()) != 1 {
			return fmt.Errorf("%v are written", found.namespaces())
		}
		return nil
	})
	before := of.Status.Revision
	expect.Eventually(t, expect.Patience, func() error { return w.revised(of, &before) })
	player, last := w.content("c")
	expect.Eventually(t, expect.Patience, func() error { return w.revised(of, &before) })
	for _, other := range clusters {
		in := other.Status.NamespaceName
		if slices.Contains(found.namespaces(), in) {
			continue // its reconciliation waits for the answer
		}
		w.manager.After(func() { expect.Change(w.t, w.seed, other, func(c *kkpv1.Cluster) { c.Labels["round"] = "1" }) }, "coreaddon", "", in)
	}
	if len(found.namespaces()) != 1 {
		t.Fatalf("%v are written", found.namespaces())
	}
	close(through)
	w.steady(func() error {
		if len(found.namespaces()) != 1 {
			return fmt.Errorf("%v are written", found.namespaces())
		}
		return nil
	})
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(last)); len(at) != len(clusters) {
			return fmt.Errorf("%v have it", at)
		}
		return w.setSays(of, v1.ReasonComplete)
	})
}

// revised waits for another revision in the status.
func (w *world) revised(of *v1.AddonSet, before *string) error {
	if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		return err
	}
	if of.Status.Revision == *before {
		return fmt.Errorf("the revision is %s", of.Status.Revision)
	}
	*before = of.Status.Revision
	return nil
}

// TestAnotherProcessGoesOnWithAWave: two clusters move at a time, and a process ends while they do. The test fails
// when a third cluster moves, when one is written twice, or when the wave does not continue.
func TestAnotherProcessGoesOnWithAWave(t *testing.T) {
	w := newWorld(t)
	player, first := w.content("a")
	const size = 6
	clusters := w.clusters(size)
	stop := w.start()
	w.everywhere(clusters, "rbac")
	player.play()
	two := intstr.FromInt32(2)
	of := w.coreSet(ungrouped, func(of *v1.AddonSet) { of.Spec.Rollout.MaxConcurrency = &two })
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	player.play()
	before := w.writes.number.Load()
	player, second := w.content("b")
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at(clusters, pinnedAt(second)); len(at) != 2 {
			return fmt.Errorf("%v have it", at)
		}
		return nil
	})
	stop()
	w.start()
	w.steady(func() error {
		if at := w.at(clusters, pinnedAt(second)); len(at) != 2 {
			return fmt.Errorf("%v have it", at)
		}
		return nil
	})
	player.until(func() error {
		moving := w.at(clusters, func(found *v1.AddonInstallation) bool {
			applied := found.Status.LastApplied
			return found.Spec.AddonRef.Digest == second && (applied == nil || applied.EntryDigest != second)
		})
		if len(moving) > 2 {
			t.Errorf("%v move at once", moving)
		}
		if at := w.at(clusters, pinnedAt(first)); len(at) != 0 {
			return fmt.Errorf("%v are at what they had", at)
		}
		return w.setSays(of, v1.ReasonComplete)
	})
	if writes := w.writes.number.Load() - before; writes != size {
		t.Errorf("%d writes for %d clusters", writes, size)
	}
}

// TestAPausedCoreSetLetsNewClustersHaveThem: core add-ons can't break a new cluster, which is not Ready without them.
// The test fails when a new cluster does not get them, or when a pause moves existing ones.
func TestAPausedCoreSetLetsNewClustersHaveThem(t *testing.T) {
	w := newWorld(t)
	clusters, of, first := w.settled(2, ungrouped)
	w.change(of, func(of *v1.AddonSet) { of.Spec.Paused = true })
	player, second := w.content("b")
	player.until(func() error { return w.setSays(of, v1.ReasonPaused) })
	expect.Eventually(t, expect.Patience, func() error { // the revision began in an earlier second
		if since := time.Since(of.Status.StartedAt.Time); since < 2*time.Second {
			return fmt.Errorf("it began %s ago", since)
		}
		return nil
	})
	clusters = append(clusters, w.clusters(1)...)
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(second)); !slices.Equal(at, []int{2}) {
			return fmt.Errorf("%v have it", at)
		}
		return nil
	})
	player.play()
	// Before the first apply, the requested version follows the set: it can't break anything.
	w.reports(clusters[2], "4 total, 1 ready, 0 failing, 3 missing", "True CoreAddonsReady")
	player, _ = w.content("c") // existing ones stay now
	player.until(func() error { return w.pends(of, 3) })
	w.only(clusters, second, 2)
	if at := w.at(clusters, pinnedAt(first)); !slices.Equal(at, []int{0, 1}) {
		t.Errorf("%v are at what they had", at)
	}
}

// TestCoreAddonsOfAnotherWorkersClustersStay: Clusters with the label of another --worker-name belong to another
// process. The test fails when core add-ons are installed in one, are changed or removed in one that gets the label,
// or when such Clusters are counted.
func TestCoreAddonsOfAnotherWorkersClustersStay(t *testing.T) {
	w := newWorld(t)
	player, first := w.content("a")
	clusters := w.clusters(3)
	leave := func(c *kkpv1.Cluster) { c.Labels[kkpv1.LabelWorkerName] = "another" }
	expect.Change(w.t, w.seed, clusters[2], leave)
	w.start()
	w.everywhere(clusters[:2], "rbac")
	player.play()
	of := w.coreSet(ungrouped)
	selects := func(number int32) func() error {
		return func() error {
			if err := w.setSays(of, v1.ReasonComplete); err != nil {
				return err
			}
			if counts := of.Status.Counts; counts == nil || counts.Selected != number {
				return fmt.Errorf("the counts are %+v", counts)
			}
			return nil
		}
	}
	player.until(selects(2))
	w.only(clusters, first, 0, 1)
	expect.Change(w.t, w.seed, clusters[1], leave)
	player.until(selects(1))
	player, second := w.content("b")
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(second)); len(at) == 0 {
			return errors.New("nobody has it")
		}
		return selects(1)()
	})
	w.only(clusters, second, 0)
	w.only(clusters, first, 1)
	if at := w.at(clusters[2:], func(*v1.AddonInstallation) bool { return true }); len(at) != 0 {
		t.Error("a core add-on is installed in a Cluster that was another worker's from the start")
	}
}

// pends checks that the status of a paused set reports a change in so many clusters.
func (w *world) pends(of *v1.AddonSet, clusters int32) error {
	if err := w.setSays(of, v1.ReasonPaused); err != nil {
		return err
	}
	if len(of.Status.Pending) != 1 || of.Status.Pending[0].Clusters != clusters {
		return fmt.Errorf("%d are pending: %+v", of.Status.PendingCount, of.Status.Pending)
	}
	return nil
}

// TestACoreCopyOfSomebodyElseIsNotGoneBy: a forged copy delays nothing, and an edited one that was in force freezes
// all. The test fails when a forged one counts or freezes the clusters, or when an edit moves anything, or removes
// pins.
func TestACoreCopyOfSomebodyElseIsNotGoneBy(t *testing.T) {
	w := newWorld(t)
	w.key = []byte("01234567890123456789012345678901")
	kit.UseKey(t, w.seed, w.marks, w.platform, w.key)
	w.content("a")
	forged := w.coreSet(named("forged"), func(of *v1.AddonSet) {
		of.Finalizers = []string{v1.FinalizerCleanupSet}
		of.Spec.Priority = 1000
	})
	forged.Annotations[v1.AnnotationMark] = "forged"
	expect.Update(t, w.seed, forged)
	clusters, of, first := w.settled(2, ungrouped)
	good := of.Spec.DeepCopy()
	expect.Change(t, w.seed, of, func(of *v1.AddonSet) { of.Spec.Rollout = nil }) // by hand: no mark
	player, second := w.content("b")
	player.play()
	w.only(clusters, second)
	w.only(clusters, first, 0, 1)
	w.change(of, func(of *v1.AddonSet) { of.Spec = *good })
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(second)); len(at) != 2 {
			return fmt.Errorf("%v have it", at)
		}
		return w.setSays(of, v1.ReasonComplete)
	})
}

// TestACoreSetThatIsDeletedUnconfirmedLivesOn fails when a deletion on the seed removes the pins.
func TestACoreSetThatIsDeletedUnconfirmedLivesOn(t *testing.T) {
	w := newWorld(t)
	clusters, of, first := w.settled(2, ungrouped)
	expect.Delete(t, w.seed, of)
	expect.HasCondition(t, w.seed, of, expect.Is(v1.ConditionDeletionBlocked, "True", v1.ReasonNotConfirmed))
	w.only(clusters, first, 0, 1)
	w.change(of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationConfirmDeletion] = of.Name })
	expect.Gone(t, w.seed, of)
	expect.Eventually(t, expect.Patience, func() error {
		free := w.at(clusters, func(found *v1.AddonInstallation) bool { return found.Spec.AddonRef == v1.AddonReference{Name: "rbac"} })
		if len(free) != 2 {
			return fmt.Errorf("%v are free", free)
		}
		return nil
	})
}

// TestAnEventOfOneClusterLooksAtThatOne fails when it makes the controller read all clusters.
func TestAnEventOfOneClusterLooksAtThatOne(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(20, ungrouped)
	w.steady(func() error { return w.setSays(of, v1.ReasonComplete) }) // events on their way
	one, all := w.looks.one.Load(), w.looks.all.Load()
	w.said(installationOf(clusters[3], "rbac"), v1.ConditionReady, metav1.ConditionFalse, v1.ReasonUnhealthy)
	w.reports(clusters[3], "4 total, 0 ready, 1 failing, 3 missing", "False CoreAddonsNotReady")
	// Requests of the first event are reconciled before, or beside, those of the second one.
	w.manager.After(func() {
		w.said(installationOf(clusters[4], "rbac"), v1.ConditionReady, metav1.ConditionFalse, v1.ReasonUnhealthy)
	}, "coreaddon", "", clusters[4].Status.NamespaceName)
	if one, all := w.looks.one.Load()-one, w.looks.all.Load()-all; one > 12 || all > 0 {
		t.Errorf("it looked at two clusters %d times, at all %d times", one, all)
	}
}

// TestASeedIsReportedByItsCopies: the custom list may select by the name of the seed. The test fails when an item is not
// installed after a copy names the seed.
func TestASeedIsReportedByItsCopies(t *testing.T) {
	w := newWorld(t)
	w.offered("net", [3]string{"1.0.0", "a", ""})
	w.listed(`[{name: net, addonRef: {name: net}, targetNamespace: net, clusterSelector: {matchLabels: {` + v1.FactSeed + `: seed}}}]`)
	of := w.clusters(1)[0]
	w.start()
	w.reports(of, "4 total, 0 ready, 0 failing, 4 missing", "Unknown CoreSetUnknown")
	tools := w.coreSet(named("tools"), func(of *v1.AddonSet) {
		of.Spec.Type = v1.AddonSetCustom
		of.Spec.Addons = []v1.AddonSetItem{{Name: "tool", AddonRef: v1.AddonReference{Name: "tool"}, TargetNamespace: "tools"}}
	})
	w.exists(of, "net")
	if tools.Spec.Type != v1.AddonSetCustom {
		t.Errorf("the copy is of type %s", tools.Spec.Type)
	}
}

// TestANamespaceThatGoesStopsNoWave: the namespace of an existing cluster is being deleted, and one cluster moves at
// a time. The test fails when it takes the place repeatedly, when it is written or read all the time, or when the
// others don't move.
func TestANamespaceThatGoesStopsNoWave(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(3, ungrouped)
	gone := clusters[0]
	w.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gone.Status.NamespaceName}})
	w.event(v1.EventDeletionBlocked)
	player, last := w.content("b")
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(last)); !slices.Equal(at, []int{1, 2}) {
			return fmt.Errorf("%v have it", at)
		}
		return w.setSays(of, v1.ReasonComplete)
	})
	if counts := of.Status.Counts; counts == nil || counts.Away != 1 || counts.Current != 2 {
		t.Errorf("the counts are %+v", counts)
	}
	writes, looks := w.writes.number.Load(), w.looks.one.Load()
	all := w.manager.All("coreaddon")
	one := w.manager.Began("coreaddon", "", gone.Status.NamespaceName)
	const rounds = 5
	for range rounds {
		w.manager.Settle("coreaddon")
	}
	if now := w.writes.number.Load(); now != writes {
		t.Errorf("%d writes in a cluster that waits", now-writes)
	}
	if now := w.manager.Began("coreaddon", "", gone.Status.NamespaceName) - one; now > 2*rounds {
		t.Errorf("the cluster whose namespace goes was reconciled %d times in %d rounds", now, rounds)
	}
	all = w.manager.All("coreaddon") - all // also the clusters of other tests
	if now := w.looks.one.Load() - looks; now > int64(20+2*all) {
		t.Errorf("clusters were looked at %d times in %d reconciliations", now, all)
	}
}

// TestANamespaceThatRefusesStopsNoCoreWave: policies refuse writes to one cluster's namespace, and one moves at a
// time. The test fails when the others wait for it forever, or when it is not reported as sick with the API server's
// message.
func TestANamespaceThatRefusesStopsNoCoreWave(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(3, ungrouped, func(of *v1.AddonSet) {
		of.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 4 * time.Second}
	})
	policy, binding := pausing(clusters[1].Status.NamespaceName)
	refusal := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	refusal.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: policy.Spec.MatchConstraints,
		Validations: []admissionv1.Validation{{
			Expression: "object.spec == oldObject.spec", Message: "nothing changes here",
		}},
	}
	refusal.Spec.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Update}
	denial := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: binding.ObjectMeta}
	denial.Spec.PolicyName, denial.Spec.ValidationActions = refusal.Name, []admissionv1.ValidationAction{admissionv1.Deny}
	expect.Create(w.t, w.seed, refusal, denial)
	t.Cleanup(func() {
		for _, object := range []client.Object{denial, refusal} {
			if err := w.seed.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		}
	})
	expect.Eventually(t, expect.Patience, func() error { // the API server applies the policy after a moment
		probe := installationOf(clusters[1], "rbac")
		if err := w.seed.Patch(t.Context(), probe, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)),
			client.DryRunAll); err == nil {
			return fmt.Errorf("the policy does not act")
		}
		return nil
	})
	player, last := w.content("b")
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(last)); !slices.Equal(at, []int{0, 2}) {
			return fmt.Errorf("%v have it", at)
		}
		if err := w.setSays(of, v1.ReasonComplete); err != nil {
			return err
		}
		if rows := of.Status.Clusters; len(rows) != 1 || rows[0].State != v1.ClusterSick || !strings.Contains(rows[0].Message, "nothing changes here") {
			return fmt.Errorf("the clusters in trouble are %+v", rows)
		}
		return nil
	})
}

// TestCoreClustersThatFailForTheirOwnReasonsHaltNobody: the only canary is cordoned; then so is a cluster of the
// rest, and an admin leaves the canary out. The test fails when one of them halts a Core set, when two don't, and
// when the annotation changes nothing.
func TestCoreClustersThatFailForTheirOwnReasonsHaltNobody(t *testing.T) {
	w := newWorld(t)
	clusters, of, _ := w.settled(3, func(of *v1.AddonSet) { of.Spec.Rollout.Groups = nil })
	player, second := w.content("b")
	player.broken, player.cause = second, v1.ReasonUnschedulable
	failing := func(number int32) func() error {
		return func() error {
			if err := w.setSays(of, v1.ReasonHalted); err != nil {
				return err
			}
			if counts := of.Status.Counts; counts == nil || counts.Failed != number {
				return fmt.Errorf("its counts are %+v", counts)
			}
			return nil
		}
	}
	player.until(failing(2)) // the first alone stopped nothing
	if at := w.at(clusters, pinnedAt(second)); len(at) != 2 {
		t.Errorf("%v have it in a halt", at)
	}
	row := of.Status.Clusters[0]
	if row.Reason != v1.ReasonUnschedulable || row.Group != v1.GroupRest {
		t.Errorf("the status lists %+v", row)
	}
	w.change(of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationLeaveOut] = row.Name })
	player.until(func() error {
		if at := w.at(clusters, pinnedAt(second)); len(at) != 3 {
			return fmt.Errorf("%v have it", at)
		}
		return nil
	})
	player.until(failing(2)) // the third
}
