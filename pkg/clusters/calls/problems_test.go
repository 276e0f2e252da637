package calls_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

func refusal(causes ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Any"}, "u", causes)
}

const (
	pod    = "{apiVersion: v1, kind: Pod, metadata: {name: u}, spec: {type: NodePort, password: hunter2-x, words: [topsecret]}}"
	custom = "{apiVersion: a.example.com/v1, kind: Any, metadata: {name: u}, spec: {type: NodePort, password: hunter2-x, port: 12345678}}"
	secret = "{apiVersion: v1, kind: Secret, metadata: {name: u}, data: {a: aHVudGVyMi14}}"
)

// Red when quoted values are repeated, in whatever form, or a reason of one is lost; when values inside of reasons are repeated; when
// words of the API are hidden; and when anything of a Secret is repeated.
func TestProblemHasTheReasonAndNoValue(t *testing.T) {
	at := field.NewPath("spec", "a")
	for name, test := range map[string]struct {
		object string
		err    error
		want   string
	}{
		"a string": {pod, refusal(field.Invalid(at, "hunter2-x", "may not be set for NodePort services")),
			"field spec.a has an invalid value: may not be set for NodePort services"},
		"a string with quotes and a colon": {pod, refusal(field.Invalid(at, `x": "hunter2-x: y`, "must be short")), "field spec.a has an invalid value: must be short"},
		"a number":                         {pod, refusal(field.Invalid(at, 7, "must be less than 5")), "field spec.a has an invalid value: must be less than 5"},
		"an object":                        {pod, refusal(field.Invalid(at, map[string]any{"a": "hunter2-x: }"}, "is wrong")), "field spec.a has an invalid value: is wrong"},
		"nothing":                          {pod, refusal(field.Invalid(at, nil, "is wrong")), "field spec.a has an invalid value: is wrong"},
		"an enumeration":                   {pod, refusal(field.NotSupported(at, "hunter2-x", []string{"NodePort", "Other"})), `field spec.a has a value that is not supported: supported values: "NodePort", "Other"`},
		"forbidden":                        {pod, refusal(field.Forbidden(at, "may not be set with hunter2-x or topsecret")), "field spec.a is not allowed: may not be set with *** or ***"},
		"required":                         {pod, refusal(field.Required(at, "one of a and b")), "field spec.a is required: one of a and b"},
		"a duplicate":                      {pod, refusal(field.Duplicate(at, "hunter2-x")), "field spec.a has a value twice"},
		"too many":                         {pod, refusal(field.TooMany(at, 7, 5)), "field spec.a has too many items: must have at most 5 items"},
		"too long":                         {pod, refusal(field.TooLong(at, "hunter2-x", 5)), "field spec.a is too long: may not be more than 5 bytes"},
		"a rule of a kind":                 {custom, refusal(field.Invalid(at, "object", "hunter2-x is not 12345678, as NodePort")), "field spec.a has an invalid value: *** is not ***, as ***"},
		"two":                              {pod, refusal(field.Required(at, "x"), field.Forbidden(at.Child("b"), "y")), "field spec.a is required: x; field spec.a.b is not allowed: y"},
		"a Secret":                         {secret, refusal(field.Invalid(at, "hunter2-x", "hunter2-x is wrong")), "field spec.a has an invalid value"},
		"a value without an end": {pod, &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.a", Message: `Invalid value: "hunter3: is wrong`}}}}}, "field spec.a has an invalid value"},
		"Go's own form": {pod, &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.a", Message: `Invalid value: {a:"hunter3: is wrong"}: x`}}}}}, "field spec.a has an invalid value"},
		"a field that the schema lacks": {pod, errors.New("failed to create typed patch object (a.b/u; v1, Kind=Pod): .spec.c[name=\"metrics\"].x: field not declared in schema"),
			`field .spec.c[name="metrics"].x is not in the schema of its kind: remove it from the manifest, or move it to the right place`},
		"two of one key": {pod, errors.New("failed to create typed patch object (a/u; v1, Kind=Pod): errors:\n  .spec.ports: duplicate entries for key [containerPort=8080,protocol=\"TCP\"]\n  .spec.env: duplicate entries for key [name=\"A\"]"),
			`list .spec.ports has the key [containerPort=8080,protocol="TCP"] twice: keep one of the two items; list .spec.env has the key [name="A"] twice: keep one of the two items`},
		"a key of a custom kind": {custom, errors.New("failed to create typed patch object (a/u; v1, Kind=Any): .spec.l: duplicate entries for key [token=\"hunter2-x\"]"),
			`list .spec.l has the key [token="***"] twice: keep one of the two items`},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			if got := calls.ProblemOf(object, test.err); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Red when a text is longer than 600 bytes, or ends within a word.
func TestProblemEndsWithAWord(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "apiVersion": "v1"}}
	for length := 1; length < 40; length++ {
		word := strings.Repeat("ä", length)
		got := calls.ProblemOf(object, refusal(field.Forbidden(field.NewPath("spec"), strings.Repeat(word+" ", 700/length))))
		end := got[strings.LastIndex(strings.TrimSuffix(got, " …"), " ")+1:]
		if len(got) > 600 || len(got) < 500 || end != word+" …" {
			t.Fatalf("words of %d: %d bytes, which end with %q", length, len(got), end)
		}
	}
}

// Red when words for a field that can't be changed are not known, or others are.
func TestImmutableIsWhatTheServerCallsSo(t *testing.T) {
	for words, want := range map[string]bool{
		"field is immutable": true, "may not change once set": true, "may not be changed": true, "Value is immutable": true,
		"spec is immutable after creation except resources.requests": true, "cannot change roleRef": true,
		"updates to statefulset spec for fields other than 'replicas' are forbidden": true, "primary clusterIP can not be unset": true,
		"may not be set when maxUnavailable is non-zero": false, "must be less than 5": false,
		"v1alpha1 was previously a storage version, and must remain in spec.versions": false,
	} {
		if got := calls.IsImmutable(refusal(field.Invalid(field.NewPath("spec"), "immutable", words))); got != want {
			t.Errorf("%q: got %v", words, got)
		}
	}
}
