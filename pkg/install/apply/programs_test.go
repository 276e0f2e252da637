package apply_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

// define creates the definition before a custom resource, as another client, and waits until its kind is served. It
// returns only the custom resource.
func define(l *lab.Lab, manifest string) (object string) {
	l.Helper()
	definition, object, more := strings.Cut(manifest, "\n---\n")
	if !more {
		return manifest
	}
	l.Create(lab.Definitions, "", definition)
	served(l, object)
	return object
}

// served waits until the kind of a custom resource is served.
func served(l *lab.Lab, object string) {
	l.Helper()
	kind := l.Objects(object)[0].GroupVersionKind()
	l.Eventually("the kind is served", func() bool {
		l.Target.Mapper.Reset()
		_, err := l.Target.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	})
}

// withoutDefinition is the last object of a manifest.
func withoutDefinition(manifest string) string {
	_, object, more := strings.Cut(manifest, "\n---\n")
	if !more {
		return manifest
	}
	return object
}

// Trellis makes the same changes as kubectl apply and helm upgrade, in both directions. It fails if a program refuses
// more than the table says, or less.
func TestUnionsAsKubectlAndHelm(t *testing.T) {
	long.Skip(t, "packages", "kubectl and helm are run for each union")
	for _, name := range []string{"kubectl", "helm"} {
		for _, test := range unions {
			t.Run(test.name+" by "+name, func(t *testing.T) {
				t.Parallel()
				l := lab.New(t)
				l.Namespace()
				p := l.Program(name)
				define(l, test.before)
				for at, manifest := range []string{test.before, test.after, test.before} {
					isRefused := at == 1 && test.name == "StatefulSet to OnDelete" // only Trellis does it
					if output, err := p.Bring(withoutDefinition(manifest)); (err != nil) != isRefused {
						t.Errorf("move %d: %v\n%s", at, err, output)
					}
				}
			})
		}
	}
}

// strict are changes that server-side apply may treat more strictly than others. Reason and words are those of the
// refusal; without a reason Trellis writes them. Refused by are the programs that refuse them too.
var strict = []struct {
	name, before, after, reason, words string
	refusedBy                          []string
}{
	{"a port twice", "", container("ports: [{name: a, containerPort: 8080}, {name: b, containerPort: 8080}]"), "ObjectInvalid",
		`list .spec.template.spec.containers[name="main"].ports has the key [containerPort=8080,protocol="TCP"] twice: keep one`, nil},
	{"a port gets a second one", container("ports: [{name: a, containerPort: 8080}]"),
		container("ports: [{name: a, containerPort: 8080}, {name: b, containerPort: 8080}]"), "ObjectInvalid", "twice: keep one", nil},
	{"a variable twice", "", container("env: [{name: A, value: one-of-them}, {name: B, value: b}, {name: A, value: another}]"), "ObjectInvalid",
		`list .spec.template.spec.containers[name="main"].env has the key [name="A"] twice: keep one`, nil},
	{"an alias twice", "", workload("Deployment", "replicas: 0, ", main+`, hostAliases: [{ip: "10.0.0.1", hostnames: [a]}, {ip: "10.0.0.1", hostnames: [b]}]`),
		"ObjectInvalid", `list .spec.template.spec.hostAliases has the key [ip="10.0.0.1"] twice: keep one`, nil},
	{"a value of a set twice", "", set("[a, b, a]"), "ObjectInvalid", "", []string{"kubectl", "helm"}},
	{"a misplaced field", "", container("imagePullSecrets: [{name: x}]"), "ObjectInvalid",
		`field .spec.template.spec.containers[name="main"].imagePullSecrets is not in the schema of its kind: remove it`, []string{"kubectl"}},
	{"a misplaced field of a Service", "", service("ports: [{port: 80}], replicas: 1"), "ObjectInvalid",
		"field .spec.replicas is not in the schema of its kind: remove it", []string{"kubectl"}},
	{"an unknown field at the top", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: u}, spec: {a: b}}", "ObjectInvalid",
		"field .spec is not in the schema of its kind: remove it", []string{"kubectl"}},
	{"an unknown field of a custom resource", "", fig("file: {path: /a, size: 3}"), "ObjectInvalid",
		"field .spec.file.size is not in the schema of its kind: remove it", []string{"kubectl"}},
	{"a variable is replaced", container("env: [{name: A, value: x}]"),
		container("env: [{name: A, $patch: replace, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "", "", nil},
	{"a variable is merged", container("env: [{name: A, value: x}]"), container("env: [{name: A, $patch: merge, value: z}]"), "", "", nil},
	{"a variable is deleted", container("env: [{name: A, value: x}, {name: B, value: z}]"),
		container("env: [{name: A, $patch: delete}, {name: B, value: z}]"), "ObjectInvalid", ".$patch is not in the schema of its kind: remove it", nil},
}

// set is a custom resource with a list that is a set.
func set(values string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: figs.NAME.example.com}, spec: {` +
		`group: NAME.example.com, scope: Namespaced, names: {kind: Fig, plural: figs, singular: fig}, ` +
		`versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, ` +
		`properties: {names: {type: array, items: {type: string}, x-kubernetes-list-type: set}}}}}}}]}}` +
		"\n---\n{apiVersion: NAME.example.com/v1, kind: Fig, metadata: {name: u}, spec: {names: " + values + "}}"
}

// TestWhatServerSideApplyReadsStrictly fails if a solution is not named, if a chart is treated differently from
// templates, and if a value is repeated.
func TestWhatServerSideApplyReadsStrictly(t *testing.T) {
	methods := map[string]func(*apply.Options){"go-template": func(*apply.Options) {}, "chart": func(options *apply.Options) {
		options.Helm = &ownership.HelmMarks{ReleaseName: "web", ReleaseNamespace: "web"}
	}}
	for method, marks := range methods {
		for _, test := range strict {
			t.Run(test.name+" by "+method, func(t *testing.T) {
				t.Parallel()
				l := lab.New(t)
				l.Namespace()
				var inventory ownership.Inventory
				if test.before != "" {
					inventory = l.Install(l.Prepare(test.before, marks), nil)
				}
				objects := l.Prepare(test.after, marks)
				expectRefusal(l, l.Rollout(objects, apply.Planned(objects, inventory), apply.RolloutOptions{}), test.reason, test.words)
			})
		}
	}
}

// TestStrictnessOfKubectlAndHelm fails if a program refuses more than the table says, or less: then docs/spec/helm.md
// is wrong.
func TestStrictnessOfKubectlAndHelm(t *testing.T) {
	long.Skip(t, "packages", "kubectl and helm are run for each row")
	for _, name := range []string{"kubectl", "helm"} {
		for _, test := range strict {
			t.Run(test.name+" by "+name, func(t *testing.T) {
				t.Parallel()
				l := lab.New(t)
				l.Namespace()
				p := l.Program(name)
				object := define(l, test.after)
				if test.before != "" {
					if output, err := p.Bring(test.before); err != nil {
						t.Fatalf("%v\n%s", err, output)
					}
				}
				output, err := p.Bring(object)
				t.Log(output)
				if isRefused := slices.Contains(test.refusedBy, name); (err != nil) != isRefused {
					t.Errorf("refused is %v, want %v", err, isRefused)
				}
			})
		}
	}
}

// A custom resource moves to another version with kubectl and helm; TestCustomResourceGoesToAnotherVersion does the
// same with Trellis. It fails if a program refuses more than the table says, or less.
func TestVersionsAsKubectlAndHelm(t *testing.T) {
	long.Skip(t, "packages", "kubectl and helm are run for each case")
	for _, program := range []string{"kubectl", "helm"} {
		for _, name := range slices.Sorted(maps.Keys(versionCases)) {
			t.Run(name+" by "+program, func(t *testing.T) {
				t.Parallel()
				test, l := versionCases[name], lab.New(t)
				l.Namespace()
				p := l.Program(program)
				first := define(l, ashes("v1beta1")+ash("v1beta1", "{a: 1, b: ours}"))
				if output, err := p.Bring(first); err != nil {
					t.Fatalf("%v\n%s", err, output)
				}
				defer l.Edit(ashesOf(l, "v1"), "p", `{metadata: {finalizers: null}}`)
				redefine(l, "v1beta1", "v1")
				test.between(l)
				if test.gone {
					redefine(l, "v1")
				}
				isRefused := test.gone && program == "helm" // it reads the release's old manifest
				if output, err := p.Bring(withoutDefinition(ash("v1", "{a: 3}"))); (err != nil) != isRefused {
					t.Errorf("refused is %v, want %v\n%s", err, isRefused, output)
				}
			})
		}
	}
}
