package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestAdoptionStopsAtTheLiving fails if decide or resolveFields adopt objects of an existing installation, or if
// package ownership ignores the label or the manager; it also fails if objects that a deleted installation left can no
// longer be adopted.
func TestAdoptionStopsAtTheLiving(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.As("monitoring", func() { l.Install(l.Prepare(lab.Settings), nil) })
	before := l.Get(lab.ConfigMaps, l.Unique, "settings")
	options := apply.RolloutOptions{Adopt: true, NameOf: l.Named("monitoring", l.Unique)}
	refused := func(what string) {
		t.Helper()
		progress := l.Rollout(l.Prepare(lab.Settings), nil, options)
		if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", what, diff)
		}
		if message := progress.Refused[0].Message; !strings.Contains(message, `add-on installation "monitoring"`) || strings.Contains(message, "adopt") {
			t.Errorf("%s: %s", what, message)
		}
	}
	refused("with manager and label")
	if diff := cmp.Diff(before, l.Get(lab.ConfigMaps, l.Unique, "settings")); diff != "" {
		t.Errorf("the object changed:\n%s", diff)
	}
	l.Edit(lab.ConfigMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
	refused("without its label")

	options.NameOf = l.Named(l.Unique)
	if progress := l.Rollout(l.Prepare(lab.Settings), nil, options); !progress.Complete {
		t.Errorf("left behind, but refused: %v", progress.Refused)
	}
}

// TestAdoptionLeavesFieldsOfTheLiving fails if resolveFields forces a field of an existing installation, or if Repair
// has no names of existing ones.
func TestAdoptionLeavesFieldsOfTheLiving(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	monitoring := ownership.Owner{ClusterUID: l.Owner.ClusterUID, Installation: "monitoring"}
	_, err := l.Others.Resource(lab.ConfigMaps).Namespace(l.Unique).Patch(t.Context(), "settings", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"size":"9"}}`),
		metav1.PatchOptions{FieldManager: monitoring.FieldManager()})
	if err != nil {
		t.Fatal(err)
	}
	wanted := l.Prepare(lab.Settings[:len(lab.Settings)-1] + `, size: "1"}`)
	options := apply.RolloutOptions{Adopt: true, NameOf: l.Named("monitoring")}
	progress := l.Rollout(wanted, inventory, options)
	if diff := cmp.Diff([]string{"ConfigMap settings: Conflict"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if message := progress.Refused[0].Message; !strings.Contains(message, `add-on installation "monitoring"`) {
		t.Error(message)
	}

	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	l.As("monitoring", func() { l.Install(l.Prepare(lab.Settings), nil) })
	repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(l.Drift(inventory)), apply.Applied{
		Objects: l.Prepare(lab.Settings), Inventory: inventory, Adopt: true, NameOf: options.NameOf,
	}))(t)
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(repaired.Refused)); diff != "" {
		t.Errorf("a repair (-want +got):\n%s", diff)
	}
}

// The record of a rollout that adopts is the same after a crash during it: a CustomResourceDefinition that existed
// before was not created by us, or it would be removed with the installation. It fails if markAdopted marks nothing,
// and if IsMade ignores the mark.
func TestAdoptionAfterCrashKnowsWhatWasThere(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Widgets)
	for _, object := range l.Objects(lab.Widgets) {
		if object.GetKind() == "CustomResourceDefinition" { // the first of those that are rolled out
			l.CreateObject(lab.Definitions, "", object)
		}
	}
	planned, options := apply.Planned(objects, nil), apply.RolloutOptions{Adopt: true}
	first := l.Rollout(objects, planned, options)
	second := l.Rollout(objects, planned, options)
	if diff := cmp.Diff(first.Inventory, second.Inventory); diff != "" || !first.Complete {
		t.Errorf("the inventory after a crash (-clean +crashed):\n%s", diff)
	}
	if entry := first.Inventory[0]; entry.Kind != "CustomResourceDefinition" || entry.Created {
		t.Errorf("the first entry is %+v", entry)
	}
	l.Remove(second.Inventory, removal.RemoveOptions{CRDs: kubermaticv1.CRDRemoveWhenUnused})
	if l.Get(lab.Definitions, "", first.Inventory[0].Name) == nil {
		t.Error("it was removed")
	}
}
