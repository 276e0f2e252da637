package clusterupgrade

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Red when a change of any add-on wakes every Cluster, or one of an add-on that upgrades wait for, or waited for, wakes none.
func TestOnlyCataloguesWithASlotWake(t *testing.T) {
	made := func(slot v1.Slot) *v1.AddonCatalogue {
		return &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{{Name: "one", Slot: slot}}}}
	}
	wakes := offersGates()
	for slot, want := range map[v1.Slot]bool{"": false, v1.SlotCNI: true} {
		one, none := made(slot), made("")
		got := []bool{
			wakes.Create(event.CreateEvent{Object: one}), wakes.Delete(event.DeleteEvent{Object: one}),
			wakes.Update(event.UpdateEvent{ObjectOld: one, ObjectNew: none}), wakes.Update(event.UpdateEvent{ObjectOld: none, ObjectNew: one}),
		}
		for i, woken := range got {
			if woken != want {
				t.Errorf("slot %q: event %d wakes: %t", slot, i, woken)
			}
		}
	}
}
