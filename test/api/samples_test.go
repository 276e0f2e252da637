package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/test/binaries"
)

// TestSamplesApply holds that what is shown of the kinds works, the sandbox's set too. Red where a sample has a field that its kind has not.
func TestSamplesApply(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, folder := range []string{"testdata", filepath.Join(root, "deploy", "sandbox", "sets")} {
		found, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no samples in %s: %v", folder, err)
		}
		files = append(files, found...)
	}
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				object := readSample(t, file)
				object.SetNamespace("default")
				if err := api.try(t.Context(), object); err != nil {
					t.Errorf("refused: %v", err)
				}
				sameInGo(t, object)
			})
		}
	})
}

// TestSetsOfTheSpecPagesApply holds that what people copy from docs/spec works. Red where an example has a field that the kind has not.
func TestSetsOfTheSpecPagesApply(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]*unstructured.Unstructured{}
	for _, page := range []string{"addonset.md", "core-addons.md"} {
		content, err := os.ReadFile(filepath.Join(root, "docs", "spec", page))
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(string(content), "```yaml\n") {
			text, _, closed := strings.Cut(block, "```")
			if !closed || !strings.Contains(text, "kind: AddonSet") {
				continue
			}
			example := parse(t, text)
			example.SetNamespace("default")
			examples[page+" "+example.GetName()] = example
		}
	}
	if len(examples) != 2 {
		t.Fatalf("%d examples found", len(examples))
	}
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for place, example := range examples {
			if err := api.try(t.Context(), example); err != nil {
				t.Errorf("%s: %v", place, err)
			}
			sameInGo(t, example)
		}
	})
}

func readSample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// sameInGo reads a sample into the Go type and back: no field of the schema is missing in Go.
func sameInGo(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kubermaticv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatalf("reading it into %T: %v", typed, err)
	}
	if set, isSet := typed.(*kubermaticv1.AddonSet); isSet {
		if err := addonset.Validate(set); err != nil {
			t.Errorf("admission refuses it: %v", err)
		}
	}
}

func TestUnknownFieldIsRefusedUnderStrictValidation(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for kind, base := range bases {
			wrong := edits{"spec.adons": "[]"}.on(t, parse(t, base))
			err := api.try(t.Context(), wrong)
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.adons"`) {
				t.Errorf("%s with an unknown field: got %v, expected a refusal that names the field", kind, err)
			}
		}
	})
}

func TestDefaults(t *testing.T) {
	want := map[string]map[string]any{
		"AddonCatalogue":    {"type": "Custom"},
		"AddonInstallation": {"coreAddon": false, "reconcileStrategy": "Continuous", "deletionPolicy": "Delete"},
		"AddonSet":          {"type": "Custom"},
	}
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for kind, base := range bases {
			sent := parse(t, base)
			got := api.keep(t, parse(t, base)).Object["spec"].(map[string]any)
			for field := range sent.Object["spec"].(map[string]any) {
				delete(got, field)
			}
			if diff := cmp.Diff(want[kind], got); diff != "" {
				t.Errorf("defaults of %s (-want +got):\n%s", kind, diff)
			}
		}
	})
}

func TestColumns(t *testing.T) {
	want := map[string]string{
		"addoncatalogues":    "Name Ready Reason Type Addons Versions Age Sources Revision* Seeds* Conflicting* Supported-By*",
		"addonsets":          "Name Ready Reason Selected Current Moving Failed Blocked Age Type* Message*",
		"addoninstallations": "Name Ready Reason Addon Version Cluster Target-Namespace Age Deleting Core* Update* Objects* Message*",
	}
	everywhere(t, func(t *testing.T, config *rest.Config) {
		for resource, columns := range want {
			if diff := cmp.Diff(columns, columnNames(table(t, config, resource))); diff != "" {
				t.Errorf("columns of %s (-want +got):\n%s", resource, diff)
			}
		}
	})
}

// rows are objects with what their columns show of it, the age aside.
var rows = map[string]struct{ status, cells string }{
	"AddonCatalogue": {
		`{conditions: [{type: Ready, status: "True", reason: Distributed, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"},
		{type: SourcesReady, status: "False", reason: FetchFailed, message: s, lastTransitionTime: "2026-01-01T00:00:00Z"},
		{type: Conflicting, status: "False", reason: NoConflict, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
		addons: 1, versions: 2, revision: 0a1b, seeds: [{name: north}, {name: south}], syncedSeeds: 2}`,
		"base True Distributed Custom 1 2 s 0a1b 2 False <nil>",
	},
	"AddonInstallation": {
		`{conditions: [{type: Ready, status: "False", reason: Timeout, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
		version: 1.2.0, availableUpdate: 1.3.0, objects: {total: 4, healthy: 3, failing: 1, summary: 3/4}}`,
		"base False Timeout prometheus 1.2.0 team-a monitoring <nil> false 1.3.0 3/4 m",
	},
	"AddonSet": {
		`{conditions: [{type: Ready, status: "False", reason: Halted, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
		counts: {selected: 9, current: 4, moving: 3, behind: 0, failed: 2, sick: 0, away: 0, blocked: 0, new: 0}}`,
		"base False Halted 9 4 3 2 0 Custom m",
	},
}

func TestCells(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for kind, row := range rows {
			object := edits{"status": row.status}.on(t, api.keep(t, parse(t, bases[kind])))
			if _, err := api.of(object).UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("writing the status of an %s: %v", kind, err)
			}
			var cells []string
			shown := table(t, config, strings.ToLower(kind)+"s")
			for i, cell := range shown.Rows[0].Cells {
				if shown.ColumnDefinitions[i].Name != "Age" { // it depends on the clock
					cells = append(cells, fmt.Sprint(cell))
				}
			}
			if diff := cmp.Diff(row.cells, strings.Join(cells, " ")); diff != "" {
				t.Errorf("cells of %s (-want +got):\n%s", kind, diff)
			}
		}
	})
}

// table reads what kubectl get reads.
func table(t *testing.T, config *rest.Config, resource string) metav1.Table {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/apis/kubermatic.k8c.io/v1/namespaces/default/"+resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

// columnNames lists a table's columns; those of the wide output carry a star.
func columnNames(table metav1.Table) string {
	var names []string
	for _, column := range table.ColumnDefinitions {
		name := column.Name
		if column.Priority > 0 {
			name += "*"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
