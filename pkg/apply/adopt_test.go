package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// named are installations of the lab's cluster that exist, by ID.
func (l *lab) named(names ...string) func(id string) string {
	known := map[string]string{}
	for _, name := range names {
		known[ownership.Owner{ClusterUID: l.owner.ClusterUID, Installation: name}.ID()] = name
	}
	return func(id string) string { return known[id] }
}

// Red when take or settleFields adopt what an installation has that exists, or when package ownership does not look at the label or
// at the manager; red too when what one left behind that is gone can't be adopted any more.
func TestAdoptionStopsAtTheLiving(t *testing.T) {
	l := newLab(t)
	l.namespace()
	l.as("monitoring", func() { l.install(l.prepare(settings), nil) })
	before := l.get(configMaps, l.name, "settings")
	options := apply.RolloutOptions{Adopt: true, NameOf: l.named("monitoring", l.name)}
	refused := func(what string) {
		t.Helper()
		progress := l.rollout(l.prepare(settings), nil, options)
		if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, reasons(progress.Refused)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", what, diff)
		}
		if message := progress.Refused[0].Message; !strings.Contains(message, `add-on installation "monitoring"`) || strings.Contains(message, "adopt") {
			t.Errorf("%s: %s", what, message)
		}
	}
	refused("with manager and label")
	if diff := cmp.Diff(before, l.get(configMaps, l.name, "settings")); diff != "" {
		t.Errorf("the object changed:\n%s", diff)
	}
	l.edit(configMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
	refused("without its label")

	options.NameOf = l.named(l.name)
	if progress := l.rollout(l.prepare(settings), nil, options); !progress.Complete {
		t.Errorf("left behind, but refused: %v", progress.Refused)
	}
}

// Red when settleFields forces a field that an installation has which exists, or when Repair knows nobody who exists.
func TestAdoptionLeavesFieldsOfTheLiving(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	monitoring := ownership.Owner{ClusterUID: l.owner.ClusterUID, Installation: "monitoring"}
	_, err := l.others.Resource(configMaps).Namespace(l.name).Patch(t.Context(), "settings", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"size":"9"}}`),
		metav1.PatchOptions{FieldManager: monitoring.FieldManager()})
	if err != nil {
		t.Fatal(err)
	}
	wanted := l.prepare(settings[:len(settings)-1] + `, size: "1"}`)
	options := apply.RolloutOptions{Adopt: true, NameOf: l.named("monitoring")}
	progress := l.rollout(wanted, inventory, options)
	if diff := cmp.Diff([]string{"ConfigMap settings: Conflict"}, reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if message := progress.Refused[0].Message; !strings.Contains(message, `add-on installation "monitoring"`) {
		t.Error(message)
	}

	l.delete(configMaps, l.name, "settings")
	l.as("monitoring", func() { l.install(l.prepare(settings), nil) })
	repaired := must(apply.Repair(t.Context(), l.target, l.owner, keysOf(l.drift(inventory)), apply.Applied{
		Objects: l.prepare(settings), Inventory: inventory, Adopt: true, NameOf: options.NameOf,
	}))(t)
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, reasons(repaired.Refused)); diff != "" {
		t.Errorf("a repair (-want +got):\n%s", diff)
	}
}

// Red when isLeft takes an object for left over that an installation has which exists.
func TestLeftoversAreNobodyElses(t *testing.T) {
	l := newLab(t)
	l.namespace()
	marks := ownership.HelmMarks{ReleaseName: "agent", ReleaseNamespace: l.name}
	l.as("monitoring", func() {
		l.install(l.prepare(settings, func(options *apply.Options) { options.Helm = &marks }), nil)
	})
	claimed := ownership.Inventory{{Version: "v1", Key: ownership.Key{Kind: "ConfigMap", Name: "settings"}}}
	for name, want := range map[string]int{"monitoring": 0, "logging": 1} {
		found := must(apply.Leftovers(t.Context(), l.target, claimed, apply.LeftoverOptions{
			Owner: l.owner, Marks: marks, NameOf: l.named(name),
		}))(t)
		if len(found) != want {
			t.Errorf("with %q alone, %v are left over, want %d", name, found, want)
		}
	}
}

// What is on record of a rollout that adopts is the same after a crash in its midst: a CustomResourceDefinition that was there before is
// none that we made, or it would go with the installation. Red when markAdopted marks nothing, and when IsMade does not look at
// the mark.
func TestAdoptionAfterCrashKnowsWhatWasThere(t *testing.T) {
	l := newLab(t)
	objects := l.prepare(widgets)
	for _, object := range l.objects(widgets) {
		if object.GetKind() == "CustomResourceDefinition" { // the first of those that are rolled out
			l.createObject(definitions, "", object)
		}
	}
	planned, options := apply.Planned(objects, nil), apply.RolloutOptions{Adopt: true}
	first := l.rollout(objects, planned, options)
	second := l.rollout(objects, planned, options)
	if diff := cmp.Diff(first.Inventory, second.Inventory); diff != "" || !first.Complete {
		t.Errorf("the inventory after a crash (-clean +crashed):\n%s", diff)
	}
	if entry := first.Inventory[0]; entry.Kind != "CustomResourceDefinition" || entry.Created {
		t.Errorf("the first entry is %+v", entry)
	}
	l.remove(second.Inventory, apply.RemoveOptions{CRDs: kubermaticv1.CRDRemoveWhenUnused})
	if l.get(definitions, "", first.Inventory[0].Name) == nil {
		t.Error("it was removed")
	}
}
