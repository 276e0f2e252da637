package fieldsets_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
)

func parsed(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Red when metadata counts; when what we alone own counts as surplus; when items are told apart by their places; when an item's key
// that is a default is no match; and when fields of others that stand in our own go.
func TestSurplusIsWhatStaysThoughItIsNotWanted(t *testing.T) {
	for name, test := range map[string]struct {
		live, wanted, ours, others string
		surplus                    []string
		without                    string
	}{
		"a default": {
			live: "{spec: {type: A, a: {x: 1}}}", wanted: "{spec: {type: B}}", ours: "{f:spec: {f:type: {}}}",
			surplus: []string{".spec.a"}, without: "{spec: {type: B}}",
		},
		"metadata and status": {
			live: "{metadata: {labels: {a: b}}, status: {a: 1}, spec: {}}", wanted: "{spec: {}}", without: "{spec: {}}",
		},
		"ours goes": {
			live: "{spec: {a: {x: 1, default: 2}}}", wanted: "{spec: {b: 1}}", ours: "{f:spec: {f:a: {f:x: {}}}}", without: "{spec: {b: 1}}",
		},
		"another's below ours": {
			live: "{spec: {a: {x: 1, y: 2}}}", wanted: "{spec: {b: 1}}", ours: "{f:spec: {f:a: {f:x: {}}}}", others: "{f:spec: {f:a: {f:y: {}}}}",
			surplus: []string{".spec.a"}, without: "{spec: {b: 1}}",
		},
		"items by their keys": {
			live:   "{l: [{name: a, x: 1}, {name: b, x: 2, d: 3}]}",
			wanted: "{l: [{name: b, x: 4}, {name: c}]}", ours: `{f:l: {'k:{"name":"b"}': {.: {}, f:name: {}, f:x: {}}}}`,
			others:  `{f:l: {'k:{"name":"a"}': {.: {}, f:name: {}, f:x: {}}}}`,
			surplus: []string{`.l[name="a"]`, `.l[name="b"].d`}, without: "{l: [{name: b, x: 4}, {name: c}]}",
		},
		"a key that is a default": {
			live: "{l: [{port: 1, protocol: TCP, x: 1}]}", wanted: "{l: [{port: 1}]}",
			ours:    `{f:l: {'k:{"port":1,"protocol":"TCP"}': {.: {}, f:port: {}}}}`,
			surplus: []string{`.l[port=1,protocol="TCP"].x`}, without: "{l: [{port: 1, protocol: TCP}]}",
		},
		"values of a set": {
			live: "{l: [a, b, c]}", wanted: "{l: [c, d]}", ours: `{f:l: {'v:"a"': {}, 'v:"c"': {}}}`, others: `{f:l: {'v:"b"': {}}}`,
			without: "{l: [c, d]}",
		},
		"lists that nobody has keys of": {
			live: "{l: [{a: 1}], m: {x: 1, y: 2}}", wanted: "{l: [{b: 1}], m: {x: 2}}", ours: "{f:l: {}, f:m: {}}", without: "{l: [{b: 1}], m: {x: 2}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			entry := func(manager, fields string) metav1.ManagedFieldsEntry {
				if fields == "" {
					fields = "{}"
				}
				raw, err := yaml.YAMLToJSON([]byte(fields))
				if err != nil {
					t.Fatal(err)
				}
				return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(string(raw))}
			}
			managed := []metav1.ManagedFieldsEntry{entry("we", test.ours), entry("they", test.others)}
			merge, err := fieldsets.NewMerge(parsed(t, test.live), parsed(t, test.wanted), managed, "we")
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			surplus := merge.Surplus()
			for _, path := range surplus {
				texts = append(texts, path.String())
			}
			slices.Sort(texts)
			if diff := cmp.Diff(test.surplus, texts); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fmt.Sprint(parsed(t, test.without)), fmt.Sprint(merge.Without(fieldpath.NewSet(surplus...)))); diff != "" {
				t.Errorf("without it (-want +got):\n%s", diff)
			}
		})
	}
}

// An API server may say that items of a list have a key of thousands of fields.
func TestKeysOfThousandsOfFieldsCostNothing(t *testing.T) {
	key, items := map[string]int{}, []any{}
	for i := range 6000 {
		key[fmt.Sprintf("k%d", i)] = 0
	}
	for range 1000 {
		items = append(items, map[string]any{})
	}
	text, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	fields, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:x": map[string]any{"k:" + string(text): map[string]any{}}}})
	if err != nil {
		t.Fatal(err)
	}
	var managed []metav1.ManagedFieldsEntry
	for _, manager := range []string{"ours", "theirs"} {
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(fields)),
		})
	}
	merge, err := fieldsets.NewMerge(map[string]any{"spec": map[string]any{"x": items}}, nil, managed, "ours")
	if err != nil {
		t.Fatal(err)
	}
	if used := testing.AllocsPerRun(1, func() { merge.Surplus() }); used > 100_000 {
		t.Errorf("%.0f allocations for a list of %d items", used, len(items))
	}
}
