package addonset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// change is the change of one installation.
type change struct {
	item     string
	kind     v1.ChangeKind
	from, to string
}

// TestPendingIsWhatIsWritten: A set waits, since it is paused or since its first group needs approval. Its
// status.pending lists exactly the writes that follow once it may continue, object by object, each once. The test
// fails when pending lacks a change or has one more, names another version, when an object is written before that, or
// twice.
func TestPendingIsWhatIsWritten(t *testing.T) {
	for _, test := range []struct {
		reason string
		wait   func(*v1.AddonSet)
		let    func(*world, *v1.AddonSet)
	}{
		{v1.ReasonPaused, func(of *v1.AddonSet) { of.Spec.Paused = true }, func(w *world, of *v1.AddonSet) {
			w.edit(of, func(of *v1.AddonSet) { of.Spec.Paused = false })
		}},
		{v1.ReasonAwaitingApproval, func(of *v1.AddonSet) {
			all := v1.RolloutGroup{Name: "all", ClusterSelector: &metav1.LabelSelector{}, Start: v1.StartApproved}
			of.Spec.Rollout.Groups = []v1.RolloutGroup{all}
		}, func(w *world, of *v1.AddonSet) { w.open(of, 2) }},
	} {
		t.Run(test.reason, func(t *testing.T) {
			w := newWorld(t, 6, 0)
			of := w.begun()
			w.edit(of, test.wait)
			waits := w.says(of, test.reason, func(counts v1.ClusterCounts) bool { return counts.Behind == 6 })
			before, writes := w.everything(), w.writes.Load()
			if before[w.names[0]]["web"] == "" || before[w.names[5]]["web"] != "" {
				t.Fatalf("before, there are %v", before)
			}
			w.quiet()

			of.Annotations[v1.AnnotationRemovalApproved] = waits.Status.Removal.Word // no cluster keeps item "more"
			test.let(w, of)
			w.says(of, v1.ReasonComplete, current(5))
			expect.Eventually(t, expect.Patience, func() error { // those of the first cluster are removed
				if left := w.everything()[w.names[0]]; len(left) > 0 {
					return fmt.Errorf("the unselected cluster has %v", left)
				}
				return nil
			})
			want, reported, total := changed(w.names, before, w.everything()), map[change]int{}, int64(0)
			for _, one := range waits.Status.Pending {
				reported[change{one.Item, one.Change, one.From, one.To}] += int(one.Clusters)
				total += int64(one.Clusters)
			}
			if diff := cmp.Diff(want, reported, cmp.AllowUnexported(change{})); diff != "" || len(want) < 4 {
				t.Errorf("-written +pending:\n%s", diff)
			}
			if written := w.writes.Load() - writes; written != total || int64(waits.Status.PendingCount) != total {
				t.Errorf("%d writes, and %d were pending, told as %d", written, total, waits.Status.PendingCount)
			}
		})
	}
}

// begun is a set that was rolled out in four of six clusters; its present spec, which is not written yet, changes all
// six.
func (w *world) begun() *v1.AddonSet {
	w.t.Helper()
	w.offers("web", "1.0.0")
	w.offers("more", "1.0.0")
	w.offers("extra", "0.1.0", "0.2.0")
	item := func(name, version string) v1.AddonSetItem {
		return v1.AddonSetItem{
			Name: v1.AddonName(name), AddonRef: v1.AddonReference{Name: v1.AddonName(name), Version: version},
			TargetNamespace: name, ReconcileStrategy: v1.ReconcileContinuous,
		}
	}
	of := w.write(w.set("tools", atOnce, without("4", "5"), func(of *v1.AddonSet) {
		of.Spec.Addons = []v1.AddonSetItem{item("web", "1.x"), item("more", "1.x")}
	}))
	w.start()
	w.says(of, v1.ReasonComplete, current(4))
	w.offers("web", "1.0.0", "2.0.0")
	of.Spec.Addons = []v1.AddonSetItem{item("web", ">= 1"), item("extra", "<= 0.1.0")}
	without("0")(of)
	return of
}

// changed are the changes of the installations of clusters, each kind with their number.
func changed(clusters []string, before, after map[string]map[string]string) map[change]int {
	found := map[change]int{}
	for _, cluster := range clusters {
		for item, to := range after[cluster] {
			if from := before[cluster][item]; from == "" {
				found[change{item, v1.ChangeInstall, "", to}]++
			} else if from != to {
				found[change{item, v1.ChangeUpdate, from, to}]++
			}
		}
		for item, from := range before[cluster] {
			if after[cluster][item] == "" {
				found[change{item, v1.ChangeRemove, from, ""}]++
			}
		}
	}
	return found
}

// everything is the version of each installation by its cluster and name.
func (w *world) everything() map[string]map[string]string {
	w.t.Helper()
	found := map[string]map[string]string{}
	for _, name := range []string{"web", "more", "extra"} {
		for cluster, one := range w.installed(name) {
			if found[cluster] == nil {
				found[cluster] = map[string]string{}
			}
			found[cluster][name] = one.Spec.AddonRef.Version
		}
	}
	return found
}

// TestClustersThatChangeInTheMiddleOfAWave: Clusters are labelled, created and deleted in the middle of a wave: a new
// one is served at once, one that changes its group moves in the new one, one that is unselected loses the set's
// installations, a deleted one is no longer waited for; at no time do more move than may. The test fails when a later
// group begins before the writes in the first are done, and when the wave doesn't end.
func TestClustersThatChangeInTheMiddleOfAWave(t *testing.T) {
	w := newWorld(t, 6, 1)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(6))
	w.player.Direct(t,
		standins.Rule{Of: standins.And(standins.InClusters(w.names[0]), standins.AtVersion("web", "1.1.0")), Act: standins.Act{Takes: 4 * time.Second}},
		standins.Rule{Of: standins.AtVersion("web", "1.1.0"), Act: standins.Act{Takes: time.Second}})
	w.offers("web", "1.0.0", "1.1.0")
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.0"); !slices.Equal(at, w.names[:1]) {
			return fmt.Errorf("%q are written", at)
		}
		return nil
	})
	w.open(of, 2)
	all := func(ring string) map[string]string { return map[string]string{"world": w.catalogue, "ring": ring} }
	w.clusters.Relabel(t, w.names[1], all("0"))
	w.clusters.Relabel(t, w.names[2], map[string]string{"world": "another"})
	w.clusters.Delete(t, w.names[3])
	expect.Eventually(t, expect.Patience, func() error { // creation times have a resolution of a second
		found := w.says(of, v1.ReasonRollingOut)
		if began := found.Status.StartedAt; time.Since(began.Time) < time.Second {
			return fmt.Errorf("the revision began at %s", began)
		}
		return nil
	})
	late := w.clusters.Make(t, standins.Shape{First: worlds*1000 + 500, Count: 1, Labels: func(int) map[string]string { return all("1") }})
	w.names = append(w.names, late...)
	var order []string
	expect.Eventually(t, 2*expect.Patience, func() error {
		moving := slices.DeleteFunc(w.moving(), func(name string) bool { return name == late[0] || name == w.names[3] })
		if len(moving) > 1 {
			t.Fatalf("%q move at a time", moving)
		}
		for _, name := range w.at("1.1.0") {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		if len(order) < 5 {
			return fmt.Errorf("%q have it", order)
		}
		return nil
	})
	done := w.says(of, v1.ReasonComplete, func(counts v1.ClusterCounts) bool { return counts.Current == 4 && counts.New == 1 })
	place := func(name string) int { return slices.Index(order, name) }
	for _, other := range []string{w.names[4], w.names[5]} {
		if place(other) < place(w.names[1]) {
			t.Errorf("%s of the rest moved before %s, which became a canary: %q", other, w.names[1], order)
		}
	}
	if place(late[0]) > place(w.names[4]) || slices.Contains(order, w.names[3]) {
		t.Errorf("the order is %q: the new cluster is %s, the deleted one %s", order, late[0], w.names[3])
	}
	expect.Eventually(t, expect.Patience, func() error {
		if _, has := w.installed("web")[w.names[2]]; has {
			return fmt.Errorf("the unselected cluster still has it")
		}
		return nil
	})
	if counts := done.Status.Counts; counts.Selected != 5 {
		t.Errorf("the counts are %+v", counts)
	}
	if groups := done.Status.Groups; len(groups) != 2 || groups[0].Counts.Current != 2 {
		t.Errorf("the groups are %+v", groups)
	}
}

// TestWhatNoLongerFitsMovesDuringAHalt: A roll-out has halted at its canary when the Kubernetes of another cluster
// becomes one that the applied version does not fit. The test fails when that cluster waits for the halt to end, and
// when another one moves with it.
func TestWhatNoLongerFitsMovesDuringAHalt(t *testing.T) {
	w := newWorld(t, 4, 1, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0 <1.37")
	of := w.write(w.set("tools"))
	w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(4))
	w.player.Direct(t, standins.Rule{
		Of: standins.And(standins.InClusters(w.names[0]), standins.AtVersion("web", "1.1.0")), Act: standins.Act{Fate: standins.RollsBack},
	})
	w.offers("web", "1.0.0 <1.37", "1.1.0")
	w.says(of, v1.ReasonHalted)
	w.clusters.Upgrade(t, w.names[2], "v1.37.0")
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.0"); !slices.Contains(at, w.names[2]) {
			return fmt.Errorf("%q have it", at)
		}
		return nil
	})
	w.says(of, v1.ReasonHalted, current(1))
	w.quiet()
	if at := w.at("1.1.0"); !slices.Equal(at, []string{w.names[0], w.names[2]}) {
		t.Errorf("%q have it", at)
	}
}
