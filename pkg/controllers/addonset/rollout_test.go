package addonset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// TestAVersionRollsByGroupsAndHaltsAtTheCanary is the story of a set: it is installed by groups, a new version in
// range is applied to the canary first and halts there, a cluster that is created meanwhile gets it at once, and the
// fix rolls. The test fails when a cluster moves before its turn or above the limit, or when a halt doesn't hold.
func TestAVersionRollsByGroupsAndHaltsAtTheCanary(t *testing.T) {
	w := newWorld(t, 5, 1)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	w.start()
	oneAtATime := func() error {
		if moving := w.moving(); len(moving) > 1 {
			t.Errorf("%q move at a time", moving)
		}
		return nil
	}
	w.says(of, v1.ReasonRollingOut, current(1)) // the rest waits for the master
	if at := w.at("1.0.0"); !slices.Equal(at, w.names[:1]) {
		t.Errorf("%q are written before the master opens their group", at)
	}
	w.open(of, 2)
	expect.Eventually(t, expect.Patience, func() error {
		_ = oneAtATime()
		if at := w.at("1.0.0"); len(at) != 5 {
			return fmt.Errorf("%q have it", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(5))
	w.reported("RolloutStarted,GroupOpened,GroupOpened,Completed")
	for name, one := range w.installed("web") {
		if one.Spec.AddonRef.Digest == "" || one.Labels[v1.LabelSet] != "tools" || one.Labels[v1.LabelManagedBy] != v1.ManagedBySets {
			t.Errorf("the installation in %s is %+v", name, one)
		}
	}
	w.quiet()

	w.player.Direct(t, standins.Rule{Of: standins.AtVersion("web", "1.1.0"), Act: standins.Act{Fate: standins.RollsBack, Takes: time.Second}})
	w.offers("web", "1.0.0", "1.1.0")
	halted := w.says(of, v1.ReasonHalted)
	if at := w.at("1.1.0"); !slices.Equal(at, w.names[:1]) {
		t.Errorf("%q have the broken version", at)
	}
	w.reported("RolloutStarted,GroupOpened,Halted")
	w.counts(map[string]float64{
		"trellis_set_moves_total": 6, "trellis_set_rollouts Halted": 1, "trellis_set_clusters selected": 5,
		"trellis_set_clusters failed": 1, "trellis_set_clusters behind": 4,
	})
	if rows := halted.Status.Clusters; len(rows) != 1 || rows[0].Name != w.names[0] || rows[0].Reason != v1.ReasonRolledBack {
		t.Errorf("the status lists %+v", rows)
	}
	w.open(of, 2) // also a master that allows it to continue
	w.quiet()
	late := w.clusters.Make(t, standins.Shape{First: worlds*1000 + 500, Count: 1, Labels: func(int) map[string]string {
		return map[string]string{"world": w.catalogue, "ring": "1"}
	}})
	w.names = append(w.names, late...)
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.0"); !slices.Contains(at, late[0]) {
			return fmt.Errorf("a new cluster waits: %q", at)
		}
		return nil
	})

	w.offers("web", "1.0.0", "1.1.1")
	w.open(of, 2)
	w.says(of, v1.ReasonRollingOut)
	w.open(of, 2)
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.1"); len(at) != 6 {
			return fmt.Errorf("%q have the fix", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(6))
	w.counts(map[string]float64{ // five at first, the canary, the new cluster, and six with the fix
		"trellis_set_moves_total": 13, "trellis_set_rollouts Complete": 1, "trellis_set_clusters selected": 6, "trellis_set_clusters current": 6,
	})
}

// counts waits until the metrics of the controller that are not 0 are these, by their name and state.
func (w *world) counts(want map[string]float64) {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.controller)
	expect.Eventually(w.t, expect.Patience, func() error {
		families, err := registry.Gather()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.Metric {
				name := family.GetName()
				for _, label := range metric.Label {
					name += " " + label.GetValue()
				}
				if value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue(); value != 0 {
					got[name] = value
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("metrics (-want +got):\n%s", diff)
		}
		return nil
	})
}

// TestMetricsAreOverSetsOfBothTypes: another controller reports the figures of the Core set. The test fails when its
// clusters, its reason or its moves are not added to those of the sets here, or one of its states is counted as
// another.
func TestMetricsAreOverSetsOfBothTypes(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	w.start()
	w.says(of, v1.ReasonComplete, current(2))
	w.counts(map[string]float64{
		"trellis_set_moves_total": 2, "trellis_set_rollouts Complete": 1, "trellis_set_clusters selected": 2, "trellis_set_clusters current": 2,
	})
	core := v1.ClusterCounts{Selected: 100, Current: 200, Moving: 3, Behind: 4, Failed: 5, Sick: 6, Away: 7, Blocked: 8, New: 9}
	reason := v1.ReasonComplete
	w.controller.Core = func() (v1.ClusterCounts, string, int64) { return core, reason, 50 }
	want := map[string]float64{
		"trellis_set_moves_total": 52, "trellis_set_rollouts Complete": 2,
		"trellis_set_clusters selected": 102, "trellis_set_clusters current": 202, "trellis_set_clusters moving": 3,
		"trellis_set_clusters behind": 4, "trellis_set_clusters failed": 5, "trellis_set_clusters sick": 6,
		"trellis_set_clusters away": 7, "trellis_set_clusters blocked": 8, "trellis_set_clusters new": 9,
	}
	w.counts(want)
	reason = v1.ReasonHalted
	want["trellis_set_rollouts Complete"], want["trellis_set_rollouts Halted"] = 1, 1
	w.counts(want)
}

// TestAProcessThatBeginsInTheMiddleOfAWaveKeepsTheLimit fails when a move of an earlier process holds no place.
func TestAProcessThatBeginsInTheMiddleOfAWaveKeepsTheLimit(t *testing.T) {
	w := newWorld(t, 6, 6, standins.Rule{Act: standins.Act{Takes: 2 * time.Second}})
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	for range 3 {
		stop := w.start()
		before := len(w.at("1.0.0"))
		expect.Eventually(t, expect.Patience, func() error {
			if moving := w.moving(); len(moving) > 1 {
				t.Fatalf("%q move at a time", moving)
			}
			if len(w.at("1.0.0")) == before {
				return fmt.Errorf("nothing moved yet")
			}
			return nil
		})
		stop() // while the installation is not Ready
	}
	w.start()
	expect.Eventually(t, expect.Patience, func() error {
		if moving := w.moving(); len(moving) > 1 {
			t.Fatalf("%q move at a time", moving)
		}
		if at := w.at("1.0.0"); len(at) != 6 {
			return fmt.Errorf("%q have it", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(6))
}

// TestAPausedSetReportsWhatItWouldDo fails when it writes an installation, or reports nothing.
func TestAPausedSetReportsWhatItWouldDo(t *testing.T) {
	w := newWorld(t, 3, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) { of.Spec.Paused = true }))
	w.start()
	found := w.says(of, v1.ReasonPaused)
	want := v1.PendingChange{Item: "web", Change: v1.ChangeInstall, To: "1.0.0", Clusters: 3}
	if pending := found.Status.Pending; len(pending) != 1 || pending[0].Example == "" || found.Status.PendingCount != 3 {
		t.Errorf("pending are %d: %+v", found.Status.PendingCount, pending)
	} else if want.Example = pending[0].Example; pending[0] != want {
		t.Errorf("pending is %+v, want %+v", pending[0], want)
	}
	w.quiet()
	of.Spec.Paused = false
	w.write(of)
	w.says(of, v1.ReasonComplete)
	if at := w.at("1.0.0"); len(at) != 3 {
		t.Errorf("%q have it", at)
	}
}

// TestOnlyWhatTheDistributorMarkedCounts: a copy that another client wrote installs nothing, and an edited one
// changes nothing.
func TestOnlyWhatTheDistributorMarkedCounts(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.useKey()
	w.offers("web", "1.0.0")
	forged := w.set("forged", atOnce, func(of *v1.AddonSet) { of.Spec.Addons[0].Name = "forged" })
	w.put(forged)
	of := w.write(w.set("tools", atOnce))
	w.start()
	w.says(of, v1.ReasonComplete, current(2))
	edited := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusterSelector":{"matchLabels":{"world":"none"}}}}`))
	expect.Patch(t, w.seed, copyOf(of), edited)
	w.quiet()
	if at := w.at("1.0.0"); len(at) != 2 {
		t.Errorf("an edited copy took it out of clusters: %q have it", at)
	}
	if found := w.installed("forged"); len(found) != 0 {
		t.Errorf("a forged copy installed %d", len(found))
	}
}

// TestWhatTheSetWroteIsPutBack fails when a change by hand stays, when restoring it is a move, or when values of
// others are removed.
func TestWhatTheSetWroteIsPutBack(t *testing.T) {
	w := newWorld(t, 1, 0)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	w.start()
	w.says(of, v1.ReasonComplete, current(1))
	was := w.installed("web")[w.names[0]]
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"addonRef":{"version":"0.9.0"},"values":{"own":1}}}`))
	expect.Patch(t, w.seed, was.DeepCopy(), edit)
	expect.Object(t, w.seed, was.DeepCopy(), func(found *v1.AddonInstallation) error {
		if found.Generation == was.Generation || found.Spec.AddonRef != was.Spec.AddonRef {
			return fmt.Errorf("it is %+v", found.Spec.AddonRef)
		}
		if found.Spec.Values == nil || found.Annotations[v1.AnnotationMoved] != was.Annotations[v1.AnnotationMoved] {
			t.Errorf("values %v, moved at %s", found.Spec.Values, found.Annotations[v1.AnnotationMoved])
		}
		return nil
	})
}
