package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/test/lab"
)

// ashes is a definition whose version v1 has a field with a default that v1beta1 lacks.
func ashes(versions ...string) string {
	schemas := map[string]string{
		"v1beta1": `{a: {type: integer}, b: {type: string}, c: {type: string}}`,
		"v1":      `{a: {type: integer}, b: {type: string}, c: {type: string}, d: {type: string, default: x}}`,
	}
	var list []string
	for i, version := range versions {
		storage := "false"
		if i == len(versions)-1 {
			storage = "true"
		}
		list = append(list, `{name: `+version+`, served: true, storage: `+storage+`, subresources: {status: {}}, schema: {openAPIV3Schema: `+
			`{type: object, properties: {spec: {type: object, properties: `+schemas[version]+`}, `+
			`status: {type: object, properties: {phase: {type: string}}}}}}}`)
	}
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ashes.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {kind: Ash, plural: ashes, singular: ash}
  versions: [` + strings.Join(list, ", ") + `]`
}

func ash(version, spec string) string {
	return "\n---\napiVersion: NAME.example.com/" + version + "\nkind: Ash\nmetadata: {name: p}\nspec: " + spec
}

func ashesOf(l *lab.Lab, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: l.Unique + ".example.com", Version: version, Resource: "ashes"}
}

// client writes to the object in a version, as a field manager.
type client struct{ version, manager string }

func (c client) write(l *lab.Lab, kind types.PatchType, patch string, subresources ...string) {
	l.Helper()
	options := metav1.PatchOptions{FieldManager: c.manager}
	_, err := l.Others.Resource(ashesOf(l, c.version)).Namespace(l.Unique).Patch(l.Context(), "p", kind, []byte(patch), options, subresources...)
	if err != nil {
		l.Fatal(err)
	}
}

// othersOf are the entries of others of the object, without their versions and times.
func othersOf(l *lab.Lab) (entries []string) {
	l.Helper()
	for _, entry := range l.Get(ashesOf(l, "v1"), l.Unique, "p").GetManagedFields() {
		if entry.Manager != l.Owner.FieldManager() {
			entries = append(entries, fmt.Sprint(entry.Manager, entry.Operation, entry.Subresource, entry.FieldsV1))
		}
	}
	slices.Sort(entries)
	return entries
}

// redefine gives the definition these versions, as another client, and waits until the newest is served.
func redefine(l *lab.Lab, versions ...string) {
	l.Helper()
	where := l.Others.Resource(lab.Definitions)
	if len(versions) == 1 {
		storedAsV1(l)
	}
	wanted := l.Objects(ashes(versions...))[0]
	wanted.SetResourceVersion(l.Get(lab.Definitions, "", wanted.GetName()).GetResourceVersion())
	lab.Must(where.Update(l.Context(), wanted, metav1.UpdateOptions{FieldManager: "kubectl-edit"}))(l)
	l.Eventually("the newest version is served alone, or with others", func() bool {
		_, newest := l.Others.Resource(ashesOf(l, "v1")).List(l.Context(), metav1.ListOptions{})
		_, oldest := l.Others.Resource(ashesOf(l, "v1beta1")).List(l.Context(), metav1.ListOptions{})
		return newest == nil && (oldest == nil) == (len(versions) == 2)
	})
}

// storedAsV1 makes the definition's status say that no object is stored as v1beta1.
func storedAsV1(l *lab.Lab) {
	l.Helper()
	lab.Must(l.Others.Resource(lab.Definitions).Patch(l.Context(), "ashes."+l.Unique+".example.com", types.MergePatchType,
		[]byte(`{"status": {"storedVersions": ["v1"]}}`), metav1.PatchOptions{}, "status"))(l)
}

// versionCase is a change between the two versions of a custom resource, and whether the first is gone then.
type versionCase struct {
	between func(*lab.Lab)
	gone    bool
}

func touch(version, manager, patch string, subresources ...string) func(*lab.Lab) {
	return func(l *lab.Lab) { client{version, manager}.write(l, types.MergePatchType, patch, subresources...) }
}

var annotated = touch("v1beta1", "kubectl-annotate", `{"metadata":{"annotations":{"seen":"yes"}}}`)

var versionCases = map[string]versionCase{
	"untouched":                {between: func(*lab.Lab) {}},
	"with an annotation":       {between: annotated},
	"with a finalizer":         {between: touch("v1beta1", "operator", `{"metadata":{"finalizers":["example.com/f"]}}`)},
	"with a status":            {between: touch("v1beta1", "operator", `{"status":{"phase":"on"}}`, "status")},
	"with a field of another":  {between: touch("v1beta1", "operator", `{"spec":{"c":"theirs"}}`)},
	"gone, with an annotation": {between: annotated, gone: true},
	"gone, with a status":      {between: touch("v1beta1", "operator", `{"status":{"phase":"on"}}`, "status"), gone: true},
	"gone, with a field of another that applies": {gone: true, between: func(l *lab.Lab) {
		client{"v1beta1", "operator"}.write(l, types.ApplyPatchType,
			`{"apiVersion":"`+l.Unique+`.example.com/v1beta1","kind":"Ash","spec":{"c":"theirs"}}`)
	}},
}

// TestCustomResourceGoesToAnotherVersion fails without moveVersions (ObjectInvalid, permanently); if it only moves our
// own entry, since the API server drops all entries that it can't convert; and if it moves them without a refusal
// (calls).
func TestCustomResourceGoesToAnotherVersion(t *testing.T) {
	for name, test := range versionCases {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := l.Update(ashes("v1beta1")+ash("v1beta1", "{a: 1, b: ours}"), nil)
			defer l.Edit(ashesOf(l, "v1"), "p", `{metadata: {finalizers: null}}`)
			inventory = l.Update(ashes("v1beta1", "v1")+ash("v1beta1", "{a: 1, b: ours}"), inventory)
			test.between(l)
			before, versions := othersOf(l), []string{"v1beta1", "v1"}
			if test.gone {
				versions = []string{"v1"}
				storedAsV1(l)
			}
			inventory = l.Update(ashes(versions...)+ash("v1", "{a: 3}"), inventory)
			check := func(after, version string, a int64, b any) {
				live := l.Get(ashesOf(l, "v1"), l.Unique, "p")
				spec := live.Object["spec"].(map[string]any)
				if spec["a"] != a || spec["b"] != b {
					t.Errorf("after %s spec is %v", after, spec)
				}
				ours := slices.DeleteFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
					return entry.Manager != l.Owner.FieldManager()
				})
				if len(ours) != 1 || !strings.HasSuffix(ours[0].APIVersion, "/"+version) {
					t.Errorf("after %s our entries are %v", after, ours)
				}
				if diff := cmp.Diff(before, othersOf(l)); diff != "" {
					t.Errorf("after %s entries of others (-before +after):\n%s", after, diff)
				}
			}
			check("the upgrade", "v1", 3, nil)
			writes := l.Writes(func() { inventory = l.Update(ashes(versions...)+ash("v1", "{a: 4}"), inventory) })
			if len(writes) != 1 {
				t.Errorf("the next upgrade writes %q, want one patch", writes)
			}
			if !test.gone {
				l.Update(ashes(versions...)+ash("v1beta1", "{a: 1, b: ours}"), inventory)
				check("the rollback", "v1beta1", 1, "ours")
			}
		})
	}
}
