package seeds_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/standins"
)

// killsOfAStory are about as many kills as each story has with -short, spread over it; without, it has all.
const killsOfAStory = 2

// isNoStatus says whether a write is made in every run: how often a status is written depends on what the manager sees on its way.
func isNoStatus(at gate.Boundary) bool { return !at.IsStatus() }

// watch what the running manager writes from now on.
func (w *world) watch(doom *gate.Boundary) *gate.Killer {
	w.killer = gate.NewKiller(doom)
	w.killer.Begin(func() *fleet.Process { return w.manager })
	w.hub.Watch(masterName, w.killer.Guard(ofSets(masterName)))
	for _, one := range w.seeds() {
		one.reach.Watch(masterName, w.killer.Guard(ofSets(one.name)))
	}
	return w.killer
}

// ofSets names the writes of sets in a cluster, and those of Secrets that sets name.
func ofSets(cluster string) func(gate.Call) string {
	return func(call gate.Call) string {
		for _, kind := range []string{"/addonsets", "/secrets"} {
			if at := strings.Index(call.Path, kind); at >= 0 {
				return call.Method + " " + cluster + call.Path[at:]
			}
		}
		return ""
	}
}

// revive starts another manager once one was killed.
func (w *world) revive() {
	if w.killer == nil || !w.killer.IsKilled() {
		return
	}
	w.killer = nil
	w.hub.Watch(masterName, gate.Guard{})
	for _, one := range w.seeds() {
		one.reach.Watch(masterName, gate.Guard{})
	}
	w.startMaster()
}

// RS07: The master manager is killed before and after its writes for sets, on the master and on both seeds, while a set rolls, while one
// halts and is mended, while clusters are let go of and taken again, while it gets other
// values of the platform, and while one is deleted and another made. Each time the end is that of a
// run without a kill, and the waves were kept to, over both seeds. Red when a gate is opened by what an earlier process had seen, when a copy
// is lost or stays, and when a set is never done.
func TestTheMasterIsKilledAtItsWrites(t *testing.T) {
	w := newWorld(t, pace(0, aLongTime))
	rolls := 0
	next := func(word string) string {
		rolls++
		return fmt.Sprintf("%s-%d", word, rolls)
	}
	w.report("roll", func() map[string]string {
		text := next("roll")
		w.roll(text)
		return w.complete(text)
	})
	w.report("halt and fix", func() map[string]string {
		w.breakAll(next("broken"))
		text := next("fixed")
		w.roll(text)
		return w.complete(text)
	})
	w.report("unselect and select", func() map[string]string {
		w.selectOnly(true)
		w.eventually(w.hasCanariesAlone)
		w.selectOnly(false)
		return w.complete(fmt.Sprintf("fixed-%d", rolls))
	})
	rolled, turns := fmt.Sprintf("fixed-%d", rolls), 0
	w.report("other values of the platform", func() map[string]string {
		turns++
		w.grant(fmt.Sprintf("secret: %d\n", turns))
		return w.complete(rolled)
	})
	w.report("delete and make", func() map[string]string {
		w.remove()
		w.begin()
		expect.Create(t, w.master, w.set(pace(0, aLongTime)))
		return w.complete("first")
	})
}

// breakAll rolls a value with which each cluster fails, until master and seeds have halted.
func (w *world) breakAll(text string) {
	w.t.Helper()
	for _, one := range w.seeds() {
		one.player.Direct(w.t, fate(standins.RollsBack, text, one.names...))
	}
	w.roll(text)
	w.expectSet(metav1.ConditionFalse, v1.ReasonHalted)
	w.eventually(func() error {
		for _, one := range w.seeds() {
			if shut, halted := one.isShut(), one.says(metav1.ConditionFalse, v1.ReasonHalted); shut != nil && halted != nil {
				return errors.Join(shut, halted)
			}
		}
		return nil
	})
	w.halt()
	for _, one := range w.seeds() {
		one.expectNone(text, one.others())
	}
}

// grant other values of the platform, and wait until both seeds have them.
func (w *world) grant(values string) {
	w.t.Helper()
	w.begin()
	before := map[*seed]string{}
	for _, one := range w.seeds() {
		before[one] = one.copied().Status.Revision
	}
	data := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{%q:%q}}`, valuesKey, values))
	expect.Patch(w.t, w.master, w.secret(), data)
	for _, one := range w.seeds() {
		w.eventually(func() error {
			copied := &corev1.Secret{}
			if err := one.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.catalogue, Name: secretName}, copied); err != nil {
				return err
			}
			if got := string(copied.Data[valuesKey]); got != values {
				return fmt.Errorf("%s has %q, want %q", one.name, got, values)
			}
			if one.copied().Status.Revision == before[one] {
				return fmt.Errorf("%s has no new revision", one.name)
			}
			return nil
		})
	}
}

// selectOnly canaries, or all Clusters: what the others have goes, or comes back.
func (w *world) selectOnly(isCanary bool) {
	w.t.Helper()
	w.moves.Begin(1, slices.Concat(w.north.others(), w.south.others())...)
	for _, one := range w.seeds() {
		one.moves.Begin(1, one.others()...)
	}
	w.edit(func(spec *v1.AddonSetSpec) {
		delete(spec.ClusterSelector.MatchLabels, labelRing)
		if isCanary {
			spec.ClusterSelector.MatchLabels[labelRing] = "0"
		}
	})
}

// hasCanariesAlone is nil once no other Cluster has anything of the set, and the set says that it is complete.
func (w *world) hasCanariesAlone() error {
	for _, one := range w.seeds() {
		if have := one.installations(); len(have) != canaries {
			return fmt.Errorf("%s has %d installations, want %d", one.name, len(have), canaries)
		}
	}
	return says(w.read(), metav1.ConditionTrue, v1.ReasonComplete)
}

// report a story once without a kill, and then with one at each boundary, or at some.
func (w *world) report(name string, story func() map[string]string) {
	w.t.Helper()
	seen := w.watch(nil)
	want := story()
	passed, kills := seen.Passed(), 0
	for _, at := range gate.SpreadOver(w.t, passed, killsOfAStory, isNoStatus) {
		seen := w.watch(&at)
		got := story()
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("%s: killed %s, the end differs from that without (-clean +killed):\n%s", name, at, diff)
		}
		if seen.Spare() {
			kills++
		}
		w.revive() // the last write of a story may come after its end
		w.expectWaves()
	}
	w.t.Logf("%s: killed at %d of %d boundaries", name, kills, len(passed))
	if kills == 0 {
		w.t.Errorf("%s: it was never killed", name)
	}
}

// complete waits until all clusters have a value, and gives what is said then.
func (w *world) complete(text string) map[string]string {
	w.t.Helper()
	end := map[string]string{}
	w.eventually(func() error {
		if err := errors.Join(w.north.moved(text, canaries+others), w.south.moved(text, canaries+others)); err != nil {
			return err
		}
		set := w.read()
		if err := says(set, metav1.ConditionTrue, v1.ReasonComplete); err != nil {
			return err
		}
		end["master"] = fmt.Sprintf("finalizers %q, counts %+v, groups %s", set.Finalizers, *set.Status.Counts, states(set))
		for _, one := range w.seeds() {
			found := one.copied()
			if err := says(found, metav1.ConditionTrue, v1.ReasonComplete); err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			if gate := found.Annotations[v1.AnnotationGate]; !strings.HasPrefix(gate, found.Status.Revision+"/") {
				return fmt.Errorf("the gate on %s is %s, its revision %s", one.name, gate, found.Status.Revision)
			}
			end[one.name] = fmt.Sprintf("finalizers %q, gate %s, counts %+v, groups %s", found.Finalizers,
				strings.TrimPrefix(found.Annotations[v1.AnnotationGate], found.Status.Revision), *found.Status.Counts, states(found))
		}
		for _, said := range set.Status.Seeds {
			if !said.Synced || said.Message != "" {
				return fmt.Errorf("of seed %s is said: %+v", said.Name, said)
			}
		}
		return nil
	})
	return end
}

func states(set *v1.AddonSet) string {
	var found []string
	for _, group := range set.Status.Groups {
		found = append(found, fmt.Sprintf("%s %s", group.Name, group.State))
	}
	return strings.Join(found, ", ")
}

// remove the set, and wait until nothing of it is left.
func (w *world) remove() {
	w.t.Helper()
	w.begin()
	w.moves.Unordered()
	for _, one := range w.seeds() {
		one.moves.Unordered()
	}
	set := w.read()
	confirm := client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1.AnnotationConfirmDeletion, setName))
	expect.NoError(w.t, errors.Join(w.master.Patch(w.t.Context(), set, confirm), w.master.Delete(w.t.Context(), set)))
	w.eventually(func() error {
		for _, one := range w.seeds() {
			if left := one.installations(); len(left) > 0 {
				return fmt.Errorf("%s has %d installations", one.name, len(left))
			}
		}
		return nil
	})
	w.eventually(func() error {
		err := w.master.Get(w.t.Context(), client.ObjectKeyFromObject(set), &v1.AddonSet{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(errors.New("the set is still there"), err)
		}
		return nil
	})
	for _, one := range w.seeds() {
		expect.Gone(w.t, one.client, &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: setName}})
	}
}
