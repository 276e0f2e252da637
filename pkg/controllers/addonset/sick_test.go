package addonset_test

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// cordon makes a version fail in clusters for a reason of the cluster itself.
func (w *world) cordon(version string, clusters ...string) {
	w.t.Helper()
	w.player.Direct(w.t, standins.Rule{
		Of:  standins.And(standins.InClusters(clusters...), standins.AtVersion("web", version)),
		Act: standins.Act{Fate: standins.RollsBack, Takes: time.Second, Cause: v1.ReasonUnschedulable},
	})
}

// rows waits until a copy lists exactly these clusters, each with group, state and reason.
func (w *world) rows(of *v1.AddonSet, want ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		var got []string
		for _, row := range found.Status.Clusters {
			got = append(got, fmt.Sprint(row.Name, " ", row.Group, " ", row.State, " ", row.Reason))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it lists %q, want %q", got, want)
		}
		return nil
	})
}

// TestAClusterThatFailsForItsOwnReasonsHaltsNobody: a canary that its own users cordoned does not halt the set: with
// another good canary the next group opens. Two canaries with the same report halt the set. An admin leaves one out:
// then the report of the other counts as its own, until the annotation is removed. The test fails when one cordoned
// cluster halts its group, when two don't halt the set, and when the annotation changes nothing.
func TestAClusterThatFailsForItsOwnReasonsHaltsNobody(t *testing.T) {
	w := newWorld(t, 4, 2)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(4))

	w.cordon("1.1.0", w.names[0])
	w.offers("web", "1.0.0", "1.1.0")
	w.rows(of, w.names[0]+" canary Sick Unschedulable")
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(3))
	w.reported("RolloutStarted,GroupOpened,GroupOpened,Completed,RolloutStarted,GroupOpened,GroupOpened,Completed")

	w.player.Direct(t)
	w.offers("web", "1.0.0", "1.1.1")
	w.says(of, v1.ReasonRollingOut)
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(4))

	w.cordon("1.2.0", w.names[0], w.names[1])
	w.offers("web", "1.0.0", "1.2.0")
	w.says(of, v1.ReasonHalted)
	w.rows(of, w.names[0]+" canary Failed Unschedulable", w.names[1]+" canary Failed Unschedulable")
	w.open(of, 2) // like an approval of an admin, which ends no halt
	w.quiet()
	of.Annotations[v1.AnnotationLeaveOut] = "cluster-" + w.names[0]
	w.write(of)
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.2.0"); len(at) != 4 {
			return fmt.Errorf("%q have it", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(2))
	w.rows(of, w.names[1]+" canary Sick Unschedulable", w.names[0]+" canary Sick LeftOut")
	delete(of.Annotations, v1.AnnotationLeaveOut)
	w.write(of)
	w.says(of, v1.ReasonHalted)
}

// TestWhoIsLeftOutMovesLast: a cluster that is left out gets a version after all others of its group, and no cluster
// waits for it. The test fails when one does, when it is never written, or written before the others.
func TestWhoIsLeftOutMovesLast(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(3))
	of.Annotations[v1.AnnotationLeaveOut] = w.names[0]
	w.write(of)
	w.rows(of, w.names[0]+" canary Sick LeftOut")
	before := expect.Object(t, w.seed, copyOf(of), func(*v1.AddonSet) error { return nil })
	w.player.Direct(t, standins.Rule{Of: standins.And(standins.InClusters(w.names[0]), standins.AtVersion("web", "1.1.0")), Act: standins.Act{Fate: standins.Hangs}})
	w.offers("web", "1.0.0", "1.1.0")
	expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		if found.Status.Revision == before.Status.Revision {
			return fmt.Errorf("its revision is still %s", found.Status.Revision)
		}
		return nil
	})
	w.open(of, 2)
	expect.Eventually(t, expect.Patience, func() error {
		if at := w.at("1.1.0"); len(at) != 3 {
			return fmt.Errorf("%q have it", at)
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(2))
	found := w.installed("web")
	if first, last := found[w.names[1]].Annotations[v1.AnnotationMoved], found[w.names[0]].Annotations[v1.AnnotationMoved]; last < first {
		t.Errorf("it moved at %s, before another of its group at %s", last, first)
	}
}
