package apply_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// writtenBy creates ConfigMap settings as a field manager writes it, as a client or by applying, with a key that the
// add-on lacks.
func writtenBy(l *lab.Lab, manager string, applied bool, metadata map[string]any) *unstructured.Unstructured {
	l.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"},
		"data": map[string]any{"color": "green", "old": "1"},
	}}
	maps.Copy(object.Object["metadata"].(map[string]any), metadata)
	client := l.Others.Resource(lab.ConfigMaps).Namespace(l.Unique)
	if !applied {
		return lab.Must(client.Create(l.Context(), object, metav1.CreateOptions{FieldManager: manager}))(l)
	}
	text := lab.Must(json.Marshal(object))(l)
	return lab.Must(client.Patch(l.Context(), "settings", types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager}))(l)
}

// Adoption makes fields that tools wrote ours, so that fields that the add-on lacks are removed, and leaves the fields
// of others. It fails, in the order of the cases, if Helm's marks don't make their writer a tool, with either
// operation; if names are not checked (moves without AdoptManagers), or only as clients; if the fields of all managers
// move; if names count without adopt; if fields of a deleted installation stay its own; and if finalizers move
// (notContent), which the next patch would remove.
func TestFieldsOfToolsAreAdopted(t *testing.T) {
	helm := map[string]any{"annotations": map[string]any{
		ownership.HelmReleaseAnnotation: "web", ownership.HelmNamespaceAnnotation: "web",
	}}
	gone := ownership.Owner{ClusterUID: "another", Installation: "web"}.FieldManager()
	for _, test := range []struct {
		why      string
		manager  string
		applied  bool
		metadata map[string]any
		named    []string
		goes     bool
	}{
		{"of Helm by another name", "manager", false, helm, nil, true},
		{"applied by Helm by another name", "manager", true, helm, nil, true},
		{"named", "manager", false, nil, []string{"other", "manager"}, true},
		{"named, and applied", "kustomize-controller", true, nil, []string{"kustomize-controller"}, true},
		{"of somebody", "manager", false, nil, nil, false},
		{"of somebody else than is named", "manager", false, nil, []string{"other"}, false},
		{"applied by somebody", "kustomize-controller", true, nil, nil, false},
		{"of an installation that is gone", gone, true, helm, nil, true},
		{"with a finalizer", "manager", false, map[string]any{"finalizers": []any{"example.com/held"}}, []string{"manager"}, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			before := writtenBy(l, test.manager, test.applied, test.metadata)
			defer l.Edit(lab.ConfigMaps, "settings", `{metadata: {finalizers: null}}`)
			progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{
				Adopt: true, AdoptManagers: test.named, NameOf: l.Named("monitoring"),
			})
			after := l.Get(lab.ConfigMaps, l.Unique, "settings")
			if !progress.Complete || progress.Inventory[0].Created || after.GetUID() != before.GetUID() {
				t.Fatalf("it was not taken over as it stands: %v", progress.Refused)
			}
			want := map[string]any{"color": "green"}
			if !test.goes {
				want["old"] = "1"
			}
			if diff := cmp.Diff(want, after.Object["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.GetFinalizers(), after.GetFinalizers()); diff != "" {
				t.Errorf("finalizers (-before +after):\n%s", diff)
			}
		})
	}
}

// TestNamedManagersAreNothingWithoutAdopt fails if names count without adopt, so that a refused object is adopted; and
// if the refusal does not say how to name a tool.
func TestNamedManagersAreNothingWithoutAdopt(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	before := writtenBy(l, "manager", false, nil)
	progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{AdoptManagers: []string{"manager"}})
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if message := progress.Refused[0].Message; !strings.Contains(message, `addons.kubermatic.k8c.io/adopt-managers: "manager" too`) {
		t.Errorf("the message does not name the way out: %s", message)
	}
	if diff := cmp.Diff(before, l.Get(lab.ConfigMaps, l.Unique, "settings")); diff != "" {
		t.Errorf("the object changed:\n%s", diff)
	}
}

// TestNamedManagersTakeNothingOfTheLiving fails if adopt-managers is read before the object's owner: objects of another
// installation are never adopted, regardless of their other writers.
func TestNamedManagersTakeNothingOfTheLiving(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.As("monitoring", func() { l.Install(l.Prepare(lab.Settings), nil) })
	monitoring := ownership.Owner{ClusterUID: l.Owner.ClusterUID, Installation: "monitoring"}
	progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{
		Adopt: true, AdoptManagers: []string{monitoring.FieldManager()}, NameOf: l.Named("monitoring", l.Unique),
	})
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if data := l.Get(lab.ConfigMaps, l.Unique, "settings").GetManagedFields(); data[0].Manager != monitoring.FieldManager() {
		t.Errorf("its fields are now %s's", data[0].Manager)
	}
}
