package rendering

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/values"
)

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

// TestWhatCoreAddonsLookUpIsGuarded fails when the results of lookup for a Core add-on don't count as secret, or the
// catalogue's own values count as a user's.
func TestWhatCoreAddonsLookUpIsGuarded(t *testing.T) {
	q := request()
	q.Choice.Core, q.Values.Layers = true, []values.Layer{{Origin: "catalogue", Values: map[string]any{"a": "b"}}}
	found := []*unstructured.Unstructured{configMap("a", "b")}
	if input := renderInput(&q, view{found: found}); !input.GuardFound || input.CatalogueValues == nil {
		t.Errorf("guarded is %t, with %v", input.GuardFound, input.CatalogueValues)
	}
	if q.Choice.Core = false; renderInput(&q, view{found: found}).GuardFound {
		t.Error("what is a user's own is kept from its text")
	}
}
