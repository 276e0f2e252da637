package distributor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
)

// heavy is a catalogue with one add-on of so many versions, of 60 KiB each.
func (w *world) heavy(name, addon string, versions int) *v1.AddonCatalogue {
	object := w.catalogueOf(name, map[string][]string{addon: {}})
	for number := range versions {
		object.Spec.Addons[0].Versions = append(object.Spec.Addons[0].Versions, addonOf(addon, fmt.Sprintf("1.%d.0", number)).Versions...)
		object.Spec.Addons[0].Versions[number].ValuesTemplate = strings.Repeat("x", 60<<10)
	}
	return object
}

// call edits a catalogue.
func (w *world) call(object *v1.AddonCatalogue, name string) {
	w.t.Helper()
	expect.Change(w.t, w.master, object, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = name })
}

// expectCalled waits until a seed has the edit.
func (w *world) expectCalled(addon, name string) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.Object(w.t, w.master, w.merged(addon), func(object *v1.AddonCatalogue) error {
		if got := object.Spec.Addons[0].DisplayName; got != name {
			return fmt.Errorf("it is called %q, want %q", got, name)
		}
		return nil
	})
}

func readyOf(object *v1.AddonCatalogue) metav1.Condition {
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// expectWaits waits until a status says that the present generation waits, and that the one before counts.
func (w *world) expectWaits(object *v1.AddonCatalogue) *v1.AddonCatalogue {
	w.t.Helper()
	counts := object.Generation - 1
	return expect.Object(w.t, w.master, object, func(object *v1.AddonCatalogue) error {
		ready := readyOf(object)
		if ready.Reason != v1.ReasonDistributing || ready.ObservedGeneration != counts || object.Status.ObservedGeneration != counts {
			return fmt.Errorf("generation %d is observed, want %d: %v", object.Status.ObservedGeneration, counts, ready)
		}
		return expect.Says(ready.Message, "its edit waits until about", fmt.Sprintf("catalogue %q", object.Name), "the seeds keep the last content")
	})
}

// Red when each edit of one who edits in a loop is written to the seed, when the status says that it was, or is written with each edit;
// when another author's edit waits for that; and when the last edit does not arrive.
func TestWhoEditsInALoopIsPaced(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	now := clocktesting.NewFakeClock(time.Now())
	w.start(func(options *distributor.Options) { options.Clock = now })
	loop, other := w.heavy("loop", "heavy", 5), w.catalogueOf("other", map[string][]string{"web": {"1.0.0"}})
	for _, object := range []*v1.AddonCatalogue{loop, other} {
		expect.Create(t, w.master, object)
		w.expectCondition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	}
	for number := range 2 { // which are free
		w.call(loop, fmt.Sprint(number))
		w.expectCalled("heavy", fmt.Sprint(number))
		w.expectCondition(loop, v1.ConditionReady, "True", v1.ReasonDistributed)
	}
	before := w.expectCalled("heavy", "1")
	w.call(loop, "first")
	waiting := w.expectWaits(loop)
	for number := range 10 {
		w.manager.After(func() { w.call(loop, fmt.Sprintf("loop-%d", number)) }, "distributor", "", "everything")
	}
	w.call(other, "edited")
	w.expectCalled("web", "edited")
	w.expectCondition(other, v1.ConditionReady, "True", v1.ReasonDistributed)
	w.manager.Stays(func() error {
		kept, reported := w.merged("heavy"), loop.DeepCopy()
		err := errors.Join(
			w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept), w.master.Get(t.Context(), client.ObjectKeyFromObject(reported), reported))
		if kept.ResourceVersion != before.ResourceVersion {
			err = errors.Join(err, fmt.Errorf("the seed was written: it is called %q", kept.Spec.Addons[0].DisplayName))
		}
		is, was := readyOf(reported), readyOf(waiting)
		if reported.Status.ObservedGeneration != waiting.Status.ObservedGeneration || is != was {
			err = errors.Join(err, fmt.Errorf("the status was written: generation %d, %v, after %v", reported.Status.ObservedGeneration, is, was))
		}
		return err
	}, "distributor", "distributor-status")
	now.Step(time.Minute)
	w.call(other, "again")
	w.expectCalled("heavy", "loop-9")
	w.expectCondition(loop, v1.ConditionReady, "True", v1.ReasonDistributed)
	if loop.Status.ObservedGeneration != loop.Generation {
		t.Errorf("generation %d is observed, of %d", loop.Status.ObservedGeneration, loop.Generation)
	}
}

// Red when a deletion waits for what its author owes, and when a restart does not bring an edit that waits.
func TestADeletionDoesNotWait(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	now := clocktesting.NewFakeClock(time.Now())
	clocked := func(options *distributor.Options) { options.Clock = now }
	stop := w.start(clocked)
	loop := w.heavy("loop", "heavy", 10)
	expect.Create(t, w.master, loop)
	w.expectCondition(loop, v1.ConditionReady, "True", v1.ReasonDistributed)
	w.call(loop, "first")
	w.expectCalled("heavy", "first")
	w.call(loop, "second")
	w.expectWaits(loop)
	stop()
	w.start(clocked)
	w.expectCalled("heavy", "second")
	w.expectCondition(loop, v1.ConditionReady, "True", v1.ReasonDistributed)
	w.call(loop, "third")
	w.expectCalled("heavy", "third")
	w.call(loop, "fourth")
	w.expectWaits(loop)
	expect.Delete(t, w.master, loop)
	expect.Gone(t, w.master, w.merged("heavy"))
}

// Red when each edit of an annotation, which changes nothing on a seed, has a pass of its own.
func TestEditsThatKeepComingAreGathered(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.start()
	object := w.catalogueOf("noted", map[string][]string{"web": {"1.0.0"}})
	expect.Create(t, w.master, object)
	w.expectCondition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	w.manager.Settle("distributor")
	before, began := w.manager.Began("distributor", "", "everything"), time.Now()
	const edits = 200
	for number := range edits {
		expect.Annotate(t, w.master, object, "example.com/note", fmt.Sprint(number))
	}
	const first = 6 // which come faster than every 250 ms
	most := int(time.Since(began)/(250*time.Millisecond)) + first
	if runs := w.manager.Began("distributor", "", "everything") - before; runs > most || runs == 0 {
		t.Errorf("%d edits had %d passes, want at most %d", edits, runs, most)
	}
}
