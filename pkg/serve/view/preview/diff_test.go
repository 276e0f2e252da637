package preview_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values"
)

func object(t *testing.T, text string) preview.Rendered {
	t.Helper()
	made := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	return preview.Rendered{Unstructured: made}
}

func open(text string) string { return text }

// rows are objects and changes in one line each.
func rows(of preview.Preview) (found []string) {
	for _, one := range of.Objects {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", one.Action, one.Kind, one.Name, one.Hook)))
		for _, change := range one.Changes {
			found = append(found, fmt.Sprintf("  %s %s %v>%v", change.Action, change.Path, change.Before, change.After))
		}
	}
	return found
}

func TestObjectsAreComparedByTheirIdentity(t *testing.T) {
	named := func(rest string) preview.Rendered {
		return object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}`+rest+`}`)
	}
	hook := named(`,"data":{"k":"hook"}`)
	hook.Hook = "templates/hook.yaml"
	for _, test := range []struct {
		why           string
		before, after []preview.Rendered
		want          []string
	}{
		{"equal", []preview.Rendered{named("")}, []preview.Rendered{named("")}, []string{"Same ConfigMap a"}},
		{"removed", []preview.Rendered{named("")}, nil, []string{"Remove ConfigMap a"}},
		{
			"new", nil, []preview.Rendered{named(`,"data":{"a.b":"1"}`)},
			[]string{
				"Create ConfigMap a", "  Create apiVersion <nil>>v1", `  Create data.a\.b <nil>>1`, "  Create kind <nil>>ConfigMap",
				"  Create metadata.name <nil>>a", "  Create metadata.namespace <nil>>n",
			},
		},
		{
			"changed", []preview.Rendered{named(`,"data":{"k":"1","gone":"x"},"list":[1,2]`)},
			[]preview.Rendered{named(`,"data":{"k":"2","new":"y"},"list":[1,3,4]`)},
			[]string{
				"Change ConfigMap a", "  Remove data.gone x><nil>", "  Change data.k 1>2", "  Create data.new <nil>>y", "  Change list[1] 2>3",
				"  Create list[2] <nil>>4",
			},
		},
		{
			"another type", []preview.Rendered{named(`,"data":{"k":"1"}`)}, []preview.Rendered{named(`,"data":"text"`)},
			[]string{"Change ConfigMap a", "  Change data map[k:1]>text"},
		},
		{
			"an empty map", []preview.Rendered{named("")}, []preview.Rendered{named(`,"data":{}`)},
			[]string{"Change ConfigMap a", "  Create data <nil>>map[]"},
		},
		{"a hook is another object", []preview.Rendered{named("")}, []preview.Rendered{named(""), hook}, []string{
			"Same ConfigMap a", "Create ConfigMap a templates/hook.yaml", "  Create apiVersion <nil>>v1", "  Create data.k <nil>>hook",
			"  Create kind <nil>>ConfigMap", "  Create metadata.name <nil>>a", "  Create metadata.namespace <nil>>n",
		}},
	} {
		t.Run(test.why, func(t *testing.T) {
			made := preview.Preview{}
			made.AddObjects(test.before, test.after, preview.Shown{Hide: open, HideLeaf: open})
			if diff := cmp.Diff(test.want, rows(made)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsSecretIsNotShown: leaves of Secrets, all leaves where some are secret, and secret texts in names and keys, also those that a
// path escapes (Shown.path).
func TestWhatIsSecretIsNotShown(t *testing.T) {
	const canary = "canary.text"
	hide := func(text string) string { return strings.ReplaceAll(text, canary, "***") }
	before := []preview.Rendered{
		object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"b2xk"}}`),
		object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"old"}}`),
	}
	after := []preview.Rendered{
		object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"derived"}}`),
		object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"derived","x-canary.text":"1"}}`),
		object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-canary.text"}}`),
	}
	merged := map[string]any{"open": "derived", canary: map[string]any{"k": "derived", "number": 1}}
	for masked, want := range map[string]int{"": 2, "some are secret": 0} {
		made, shown := preview.Preview{}, preview.Shown{Masked: masked, Hide: hide, HideLeaf: hide}
		made.AddValues(merged, values.Origins{"open": "installation"}, shown)
		values := made.Values
		made.AddObjects(before, after, shown)
		encoded, err := json.Marshal(made.Objects)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(encoded), "canary") || strings.Contains(string(encoded), "b2xk") {
			t.Errorf("masked %q: a secret is shown: %s", masked, encoded)
		}
		if got := strings.Count(string(encoded), "derived"); got != min(want, 1) || made.Masked != masked {
			t.Errorf("masked %q: %d leaves are shown, and it says %q: %s", masked, got, made.Masked, encoded)
		}
		encoded, err = json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(encoded), "derived"); got != want || strings.Contains(string(encoded), "canary") {
			t.Errorf("masked %q: values are %s", masked, encoded)
		}
		if made.Counts != (preview.Counts{Create: 1, Change: 2}) {
			t.Errorf("counts are %+v", made.Counts)
		}
	}
}

func TestLargePreviewsAreCut(t *testing.T) {
	large := map[string]any{"long": strings.Repeat("x", 10_000)}
	for i := range 5000 {
		large[fmt.Sprintf("key-%d", i)] = "v"
	}
	made := preview.Preview{}
	made.AddValues(large, nil, preview.Shown{Hide: open, HideLeaf: open})
	if !made.Truncated || len(made.Values) != 2000 {
		t.Errorf("%d values are shown, truncated %t", len(made.Values), made.Truncated)
	}
	made = preview.Preview{}
	wide := preview.Rendered{Unstructured: &unstructured.Unstructured{Object: large}}
	changed := object(t, `{"kind":"A","metadata":{"name":"a"},"k":"2"}`)
	was := object(t, `{"kind":"A","metadata":{"name":"a"},"k":"1"}`)
	made.AddObjects([]preview.Rendered{was}, []preview.Rendered{wide, changed}, preview.Shown{Hide: open, HideLeaf: open})
	if !made.Truncated || len(made.Objects[0].Changes) != 1999 || len(made.Objects[1].Changes) != 1 {
		t.Errorf("truncated %t, %d and %d changes", made.Truncated, len(made.Objects[0].Changes), len(made.Objects[1].Changes))
	}
	made = preview.Preview{}
	made.AddValues(map[string]any{"long": large["long"]}, nil, preview.Shown{Hide: open, HideLeaf: open})
	if shown := made.Values[0].Value.(string); len(shown) > 600 {
		t.Errorf("%d bytes of a text are shown", len(shown))
	}
}
