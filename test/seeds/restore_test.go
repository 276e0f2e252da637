package seeds_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// backup what an API server has now; the returned function puts it back.
func backup(t *testing.T, name string) (restore func()) {
	t.Helper()
	cluster := fleet.Shared().Cluster(name)
	had, err := cluster.Backup(t.Context())
	expect.NoError(t, err)
	return func() {
		t.Helper()
		expect.NoError(t, cluster.Restore(t.Context(), had))
	}
}

// RS60: A master that is restored from before a set was changed, and another one made, removes nothing.
// The seeds go back to what the set said, by waves, and keep the copy of the other and what it made; made again, it goes on with that.
// Red when a copy goes that the master does not know.
func TestAMasterThatIsRestoredRemovesNothing(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	restore := backup(t, masterName)
	w.roll("second")
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	later := func() *v1.AddonSet {
		made := w.set(pace(0, aLongTime))
		made.Name, made.Spec.Addons[0].Name, made.Spec.Addons[0].TargetNamespace = laterName, "more", "more"
		return made
	}
	expect.Create(t, w.master, later())
	hasBoth := func() error {
		for _, one := range w.seeds() {
			if found := len(one.installations()); found != 2*(canaries+others) {
				return fmt.Errorf("%s has %d installations", one.name, found)
			}
		}
		return nil
	}
	w.eventually(hasBoth)
	before := append(w.north.uids(), w.south.uids()...)

	w.manager.Kill()
	restore()
	w.begin()
	w.startMaster()
	w.eventually(func() error {
		return errors.Join(w.north.moved("first", canaries+others), w.south.moved("first", canaries+others))
	})
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	w.roll("third") // once it is everywhere, the master has looked at all that the seeds have, and written there
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	w.eventually(func() error {
		return errors.Join(w.north.moved("third", canaries+others), w.south.moved("third", canaries+others))
	})
	for _, one := range w.seeds() {
		if err := one.client.Get(t.Context(), client.ObjectKey{Namespace: w.catalogue, Name: laterName}, &v1.AddonSet{}); err != nil {
			t.Error(err)
		}
	}
	if err := hasBoth(); err != nil {
		t.Error(err)
	}
	expect.Create(t, w.master, later())
	expect.Object(t, w.master, later(), func(found *v1.AddonSet) error { return says(found, metav1.ConditionTrue, v1.ReasonComplete) })
	if diff := cmp.Diff(before, append(w.north.uids(), w.south.uids()...)); diff != "" {
		t.Errorf("installations were made anew (-before +after):\n%s", diff)
	}
	w.expectWaves()
}

// RS60: A seed that is restored from before a set was changed follows by waves, in the installations that it has.
// Red when one that comes back with an old copy and an old status moves its groups at once, or deletes anything.
func TestASeedThatIsRestoredFollowsByWaves(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	before, restore := w.south.uids(), backup(t, w.south.name)
	w.roll("second")
	w.expectSet(metav1.ConditionTrue, v1.ReasonComplete)
	w.expectWaves()

	w.south.process.Kill()
	w.begin()
	w.leaveOut(w.north)
	restore()
	w.south.start()
	w.expectFollowed(before)
}
