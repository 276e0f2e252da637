package addonset_test

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestACopyThatCantBeGoneByHoldsWhatItMayWant: somebody edits the copy of a set, and another set lets go of a cluster. Red when the edited
// copy stops removals that are no business of its, when what it wants by its last good spec is removed, or when that does not go over to
// it once it is as the distributor wrote it.
func TestACopyThatCantBeGoneByHoldsWhatItMayWant(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.useKey()
	w.offers("web", "1.0.0")
	w.offers("logs", "1.0.0")
	item := func(name v1.AddonName) v1.AddonSetItem {
		return v1.AddonSetItem{
			Name: name, AddonRef: v1.AddonReference{Name: name, Version: "1.x"}, TargetNamespace: string(name),
			ReconcileStrategy: v1.ReconcileContinuous,
		}
	}
	tools := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) {
		of.Spec.Priority, of.Spec.Addons = 1, []v1.AddonSetItem{item("web"), item("logs")}
	}))
	other := w.write(w.set("other", atOnce, func(of *v1.AddonSet) { of.Spec.Addons = []v1.AddonSetItem{item("logs")} }))
	w.start()
	w.says(tools, v1.ReasonComplete, current(2))
	w.says(other, v1.ReasonComplete, current(2))

	edited := expect.Object(t, w.seed, copyOf(other), func(*v1.AddonSet) error { return nil })
	edited.Spec.Addons[0].Name = "page"
	if err := w.seed.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	w.edit(tools, without("0"))
	expect.Eventually(t, expect.Patience, func() error { return w.has(1) })
	expect.Always(t, 2*time.Second, func() error {
		if one := w.installed("logs")[w.names[0]]; one == nil || !one.DeletionTimestamp.IsZero() {
			return fmt.Errorf("what the edited copy may want is %+v", one)
		}
		return nil
	})
	w.write(other)
	expect.Eventually(t, expect.Patience, func() error {
		if one := w.installed("logs")[w.names[0]]; one == nil || one.Labels[v1.LabelSet] != "other" {
			return fmt.Errorf("what the other set wants is %+v", one)
		}
		return nil
	})
}
