package distributor_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// bulkSet is a set of so many bytes.
func (w *world) bulkSet(name string, bytes int) *v1.AddonSet {
	made := w.setOf(name)
	made.Spec.Addons[0].Values = &kruntime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%q}`, noise(bytes))}
	return made
}

// heldSet is what the master's cache has of a set.
func (w *world) heldSet(set *v1.AddonSet) *v1.AddonSet {
	w.t.Helper()
	found := &v1.AddonSet{}
	expect.Get(w.t, w.running.GetClient(), client.ObjectKeyFromObject(set), found)
	return found
}

// No webhook is asked here. Red when sets that fill the store, in the platform's namespace or another one, fill the manager's memory too, now
// or after a restart; when the author is not told; when sets that were there, or small ones, go no further; when a copy of one that is a stub
// after a restart changes, with what it says of clusters that are left out; or when a stub replaces its set.
func TestAFloodOfSetsIsNotHeldInMemory(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.heldSets = 4 << 20
	stop := w.start()
	early := w.bulkSet("early", 100<<10)
	expect.Create(t, w.master, early)
	w.seedSays("north", early, "r1", behind(1), behind(2))
	w.seedSays("south", early, "r1", behind(1), behind(2))
	w.expectGate("north", early, "r1/1")
	expect.Annotate(t, w.master, early, v1.AnnotationLeaveOut, "one,two")
	leftOut := func(found *v1.AddonSet) error {
		return expect.Says(found.Annotations[v1.AnnotationLeaveOut], "one", "two")
	}
	w.expectCopy("north", early, leftOut)
	elsewhere := w.platform + "-other"
	expect.Create(t, w.master, kit.Namespace(elsewhere))
	t.Cleanup(func() {
		if err := w.master.DeleteAllOf(context.Background(), &v1.AddonSet{}, client.InNamespace(elsewhere)); err != nil {
			t.Error(err)
		}
	})

	const flood = 24
	before := heap()
	var last *v1.AddonSet
	for at := range flood {
		foreign := w.bulkSet(fmt.Sprintf("bulk-%02d", at), 200<<10)
		last = foreign.DeepCopy()
		foreign.Namespace = elsewhere
		expect.Create(t, w.master, foreign)
		expect.Create(t, w.master, last)
	}
	w.expectSetSays(last, "False", v1.ReasonTooLarge, "bulk-23", "KiB of memory", "delete AddonSets")
	w.expectHeld(before, 2*w.heldSets)
	if kept := w.heldSet(last); !budget.IsStub(kept) {
		t.Errorf("the last one is held whole: %d items", len(kept.Spec.Addons))
	} else if err := w.running.GetClient().Update(t.Context(), kept); err == nil || !strings.Contains(err.Error(), "without its content") {
		t.Errorf("a stub replaces its set: %v", err)
	}
	late := w.setOf("late")
	expect.Create(t, w.master, late)
	w.expectCopy("south", late, carriedBy(late))
	editSet(w, early, func(set *v1.AddonSet) { set.Spec.Priority = 7 })
	w.seedSays("north", early, "r2", behind(1), behind(2))
	w.seedSays("south", early, "r2", behind(1), behind(2))
	w.expectGate("north", early, "r2/1")
	was := w.expectCopy("north", early, leftOut)

	// After a restart in less memory what was there is a stub too. The seeds keep what they have of it.
	stop()
	w.heldSets = 400 << 10
	stop = w.start()
	w.expectSetSays(early, "False", v1.ReasonTooLarge, "the seeds keep its last content")
	editSet(w, late, func(set *v1.AddonSet) { set.Spec.Priority = 9 })
	w.expectCopy("north", late, carriedBy(late))
	w.steady(func() error {
		now := w.copyOf(early)
		err := w.master.Get(t.Context(), client.ObjectKeyFromObject(now), now)
		if err == nil && (!equality.Semantic.DeepEqual(now.Spec, was.Spec) || !maps.Equal(now.Annotations, was.Annotations)) {
			err = fmt.Errorf("the copy changed: %v, from %v", now.Annotations, was.Annotations)
		}
		return err
	})
	stop()
}
