package addoninstallation

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

func TestByChance(t *testing.T) {
	type m = map[string]any
	type l = []any
	for _, test := range []struct {
		why                   string
		recorded, once, twice any
		want                  bool
	}{
		{"nothing differs", m{"a": "x"}, m{"a": "x"}, m{"a": "x"}, true},
		{"made up", m{"a": "x"}, m{"a": "y"}, m{"a": "z"}, true},
		{"changed", m{"a": "x"}, m{"a": "y"}, m{"a": "y"}, false},
		{"made up, and changed beside it", m{"a": "x", "b": "1"}, m{"a": "y", "b": "2"}, m{"a": "z", "b": "2"}, false},
		{"added", m{}, m{"a": "y"}, m{"a": "y"}, false},
		{"added by chance", m{}, m{"a": "y"}, m{}, true},
		{"removed", m{"a": "x"}, m{}, m{}, false},
		{"removed by chance", m{"a": "x"}, m{}, m{"a": "x"}, true},
		{"a name that is made up", m{"job-1": "x"}, m{"job-2": "x"}, m{"job-3": "x"}, true},
		{"added beside a name that is made up", m{"job-1": "x"}, m{"job-2": "x", "a": "y"}, m{"job-3": "x", "a": "y"}, false},
		{"an element", l{"a", "x"}, l{"a", "y"}, l{"a", "z"}, true},
		{"an element that is changed", l{"a", "x"}, l{"b", "y"}, l{"b", "z"}, false},
		{"one more", l{"a"}, l{"a", "b"}, l{"a", "b"}, false},
		{"so many by chance", l{"a"}, l{"a", "b"}, l{}, true},
		{"another kind of value", m{"a": m{}}, m{"a": "y"}, m{"a": "y"}, false},
		{"null", m{"a": nil}, m{"a": "y"}, m{"a": "y"}, false},
	} {
		if got := byChance(test.recorded, test.once, test.twice); got != test.want {
			t.Errorf("%s: %t, want %t", test.why, got, test.want)
		}
	}
}

func TestKindsAreReadFromTheChart(t *testing.T) {
	for _, test := range []struct {
		why, path, text string
		want            kindsAsked
	}{
		{"none", "templates/a.yaml", "a: {{ .Values.a }}", kindsAsked{}},
		{"written out", "templates/a.yaml", `{{ lookup "v1" "Secret" .Release.Namespace "x" }}`, kindsAsked{named: map[string]bool{"Secret": true}}},
		{"in a file that tpl may render", "files/a.txt", `{{ lookup "v1" "Secret" "" "" }}`, kindsAsked{named: map[string]bool{"Secret": true}}},
		{"by a variable", "templates/_a.tpl", `{{ lookup "v1" $kind "" "" }}`, kindsAsked{all: true}},
		{"a packed dependency", "charts/a-1.0.0.tgz", "\x1f\x8b", kindsAsked{all: true}},
		{"words of a page", "README.md", "{{ lookup }}", kindsAsked{}},
		{"words of a schema", "crds/a.yaml", "lookup {{ }}", kindsAsked{}},
	} {
		asked, err := kindsLookedUp(fstest.MapFS{"Chart.yaml": {Data: []byte("name: a\n")}, test.path: {Data: []byte(test.text)}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, asked, cmp.AllowUnexported(kindsAsked{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Red when what lookup finds for a Core add-on is no secret, or the catalogue's own values count as a user's.
func TestWhatCoreAddonsLookUpIsGuarded(t *testing.T) {
	f := &facts{
		installation: &kubermaticv1.AddonInstallation{}, memory: &memory{},
		choice: resolution.Choice{
			Core: true, Version: &kubermaticv1.AddonVersion{Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}},
		},
		values: resolution.Values{Layers: []values.Layer{{Values: map[string]any{"a": "b"}}}},
	}
	found := []*unstructured.Unstructured{configMap("a", "b")}
	if input := (&Reconciler{}).renderInput(f, sight{found: found}); !input.GuardFound || input.CatalogueValues == nil {
		t.Errorf("guarded is %t, with %v", input.GuardFound, input.CatalogueValues)
	}
	if f.choice.Core = false; (&Reconciler{}).renderInput(f, sight{found: found}).GuardFound {
		t.Error("what is a user's own is kept from its text")
	}
}
