package seeds_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/standins"
)

// aLongTime is a deadline that no test comes to.
const aLongTime = 10 * time.Minute

// The second group opens on neither seed before both did the first, also where one did it long before the other. Red when the master opens
// the gate of each seed by its own row.
func TestAGroupOpensOnNoSeedBeforeBothDidTheOneBefore(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	w.south.player.Direct(t, fate(standins.Hangs, "second", w.south.canaries()...))
	w.roll("second")
	w.eventually(func() error { return errors.Join(w.hasHeard(w.north, canaries), w.south.moved("second", 1)) })
	first := w.south.have("second", w.south.names)
	w.south.player.Direct(t, fate(standins.Hangs, "second", without(w.south.canaries(), first)...))
	w.eventually(func() error { return errors.Join(w.hasHeard(w.south, 1), w.south.moved("second", 2)) })
	for _, one := range w.seeds() {
		one.expectNone("second", one.others())
	}
	w.south.player.Direct(t)
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	w.eventually(func() error {
		return errors.Join(w.north.moved("second", canaries+others), w.south.moved("second", canaries+others))
	})
	w.expectWaves()
}

// A failure on one seed is within the limit of one, and the seed goes on; with one more on the other seed both halt in the middle of their
// group, though neither is above the limit by itself. Red when each seed's failures are judged alone.
func TestFailuresOfBothSeedsTogetherHaltBoth(t *testing.T) {
	w := newWorld(t, pace(1, aLongTime))
	for _, one := range w.seeds() {
		one.player.Direct(t, fate(standins.Hangs, "second", one.canaries()...))
	}
	w.roll("second")
	w.eventually(func() error { return errors.Join(w.north.moved("second", 1), w.south.moved("second", 1)) })
	failing := map[*seed]standins.Rule{}
	for _, one := range w.seeds() {
		failing[one] = fate(standins.RollsBack, "second", one.have("second", one.names)...)
		one.player.Direct(t, failing[one], fate(standins.Hangs, "second", one.canaries()...))
		if one == w.north {
			w.eventually(func() error { return errors.Join(w.north.moved("second", 2), w.hasFailed(1)) })
			if err := says(w.read(), metav1.ConditionFalse, v1.ReasonRollingOut); err != nil {
				t.Errorf("after one failure: %v", err)
			}
		}
	}
	w.expectSet(metav1.ConditionFalse, v1.ReasonHalted)
	w.eventually(func() error { return errors.Join(w.north.isShut(), w.south.isShut()) })
	w.halt()
	for _, one := range w.seeds() { // who moves gets Ready, and frees the place that the next one would take
		one.player.Direct(t, failing[one])
		w.eventually(func() error { return one.nobodyMoves("second") })
		if moved := one.have("second", one.names); len(moved) == canaries {
			t.Errorf("all canaries of %s moved, so that nothing shows that it halted", one.name)
		}
		one.expectNone("second", one.others())
	}
	w.expectWaves()
	w.edit(func(spec *v1.AddonSetSpec) { spec.Rollout.MaxFailures = pace(2, 0).MaxFailures }) // only the failures held them
	w.begin()
	w.eventually(func() error {
		return errors.Join(w.north.moved("second", canaries+others), w.south.moved("second", canaries+others))
	})
}

// RS03: With the master killed, seeds go on within their last gate, and one halts by itself on its own failures. The master hears of it
// once it is back. Red when a seed waits for the master's word to halt.
func TestASeedHaltsByItselfWithTheMasterKilled(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	for _, one := range w.seeds() {
		one.player.Direct(t, fate(standins.Hangs, "second", one.others()...))
	}
	w.roll("second")
	w.eventually(func() error { // the first of the others has the place, and keeps it
		return errors.Join(w.north.moved("second", canaries+1), w.south.moved("second", canaries+1))
	})
	w.manager.Kill()
	w.north.player.Direct(t, fate(standins.RollsBack, "second", w.north.others()...))
	w.eventually(func() error { return w.north.says(metav1.ConditionFalse, v1.ReasonHalted) })
	w.north.moves.Halt()
	w.south.player.Direct(t)
	w.eventually(func() error {
		return errors.Join(w.south.moved("second", canaries+others), w.south.says(metav1.ConditionTrue, v1.ReasonComplete))
	})
	if err := w.north.moved("second", canaries+1); err != nil {
		t.Errorf("after its halt: %v", err)
	}
	w.startMaster()
	w.expectSet(metav1.ConditionFalse, v1.ReasonHalted)
	w.expectWaves()
}

// A seed that is out of reach for longer than the deadline is waited for no more, and follows by waves once it is back. Red when a
// seed that is lost holds all others, or when one that comes back moves its groups at once.
func TestASeedOutOfReachIsLeftOutAndFollowsByWaves(t *testing.T) {
	const deadline = 6 * time.Second
	w := newWorld(t, pace(0, deadline))
	began, before := time.Now(), w.south.uids()
	w.south.reach.Shut()
	w.roll("second")
	w.leaveOut(w.south)
	w.eventually(func() error {
		if len(w.north.have("second", w.north.others())) == 0 {
			return errors.New("north does not move its last group")
		}
		return nil
	})
	if took := time.Since(began); took < deadline {
		t.Errorf("north opened its last group after %s: the deadline of a seed that is not heard is %s", took, deadline)
	}
	w.eventually(func() error { return w.north.moved("second", canaries+others) })
	w.south.expectNone("second", w.south.names)
	if err := w.south.reach.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.expectFollowed(before)
}

// RS21: A seed that is taken off the list keeps all it has, and follows by waves once it is listed again: nothing is deleted or made
// anew. Red when one that comes back moves its groups at once.
func TestASeedThatIsListedAgainKeepsWhatItHasAndFollowsByWaves(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	before := w.south.uids()
	w.unlist(w.south)
	w.roll("second")
	w.leaveOut(w.south)
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	if err := w.north.moved("second", canaries+others); err != nil {
		t.Error(err)
	}
	w.south.expectNone("second", w.south.names)
	w.list(w.south)
	w.expectFollowed(before)
}

// expectFollowed waits until south has what north has, by waves, in the installations of before.
func (w *world) expectFollowed(before []types.UID) {
	w.t.Helper()
	w.eventually(func() error { return w.south.moved("second", canaries+others) })
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	if diff := cmp.Diff(before, w.south.uids()); diff != "" {
		w.t.Errorf("installations of south were made anew (-before +after):\n%s", diff)
	}
	w.expectWaves()
}

// hasFailed is nil once the master counts so many failures.
func (w *world) hasFailed(want int32) error {
	if counts := w.read().Status.Counts; counts == nil || counts.Failed != want {
		return fmt.Errorf("the master counts %+v, want %d failed", counts, want)
	}
	return nil
}

// hasHeard is nil once the master says of a seed that so many clusters are current, by a status of the present spec.
func (w *world) hasHeard(of *seed, current int32) error {
	set := w.read()
	for _, said := range set.Status.Seeds {
		if said.Name == of.name && said.Synced && said.Counts != nil && said.Counts.Current == current &&
			set.Status.ObservedGeneration == set.Generation {
			return nil
		}
	}
	return fmt.Errorf("the master has not heard that %d clusters of %s are current: %+v", current, of.name, set.Status.Seeds)
}
