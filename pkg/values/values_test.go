package values_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

func TestMerge(t *testing.T) {
	for _, test := range []struct {
		why     string
		layers  []string
		want    string
		origins values.Origins
	}{
		{
			why:     "maps merge by key",
			layers:  []string{`a: {x: 1, k: 2}`, `a: {k: 3, z: 4}`},
			want:    `a: {x: 1, k: 3, z: 4}`,
			origins: values.Origins{"a.x": "0", "a.k": "1", "a.z": "1"},
		},
		{
			why:     "lists replace",
			layers:  []string{`a: [1, 2, 3]`, `a: [4]`},
			want:    `a: [4]`,
			origins: values.Origins{"a": "1"},
		},
		{
			why:     "a scalar replaces a map, with all that was in it",
			layers:  []string{`a: {x: {k: 1}}`, `a: off it goes`},
			want:    `a: off it goes`,
			origins: values.Origins{"a": "1"},
		},
		{
			why:     "a map replaces a scalar",
			layers:  []string{`a: 1`, `a: {x: 2}`},
			want:    `a: {x: 2}`,
			origins: values.Origins{"a.x": "1"},
		},
		{
			why:     "a null removes what is below, and stays for the chart",
			layers:  []string{`a: {x: 1, k: 2}`, `a: {x: null}`},
			want:    `a: {x: null, k: 2}`,
			origins: values.Origins{"a.x": "1", "a.k": "0"},
		},
		{
			why:     "what was removed may come back without its old keys",
			layers:  []string{`a: {x: 1}`, `a: null`, `a: {k: 2}`},
			want:    `a: {k: 2}`,
			origins: values.Origins{"a.k": "2"},
		},
		{
			why:     "an empty map takes nothing away",
			layers:  []string{`a: {x: 1}`, `a: {}`},
			want:    `a: {x: 1}`,
			origins: values.Origins{"a.x": "0"},
		},
		{
			why:     "an empty map is a value where nothing was",
			layers:  []string{`b: 1`, `a: {}`},
			want:    `{a: {}, b: 1}`,
			origins: values.Origins{"a": "1", "b": "0"},
		},
		{
			why:     "an empty map is forgotten once something is in it",
			layers:  []string{`a: {}`, `a: {x: 1}`},
			want:    `a: {x: 1}`,
			origins: values.Origins{"a.x": "1"},
		},
		{
			why:     "keys with dots stay one key",
			layers:  []string{`a.b: 1`, `a: {b: 2}`},
			want:    `{a.b: 1, a: {b: 2}}`,
			origins: values.Origins{`a\.b`: "0", "a.b": "1"},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			var layers []values.Layer
			for i, text := range test.layers {
				layers = append(layers, values.Layer{Origin: string(rune('0' + i)), Values: decode(t, text)})
			}
			merged, origins, err := values.Merge(layers)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, test.want), merged); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.origins, origins); diff != "" {
				t.Errorf("origins (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeSharesNothing(t *testing.T) {
	below := decode(t, `{a: {x: [1]}}`)
	merged, _, err := values.Merge([]values.Layer{{Origin: "below", Values: below}, {Origin: "above", Values: decode(t, `{a: {k: 1}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	merged["a"].(map[string]any)["x"].([]any)[0] = "changed"
	if diff := cmp.Diff(decode(t, `{a: {x: [1]}}`), below); diff != "" {
		t.Errorf("the layer was changed (-want +got):\n%s", diff)
	}
}

// Red when the error about too large values has their size.
func TestMergeRefuses(t *testing.T) {
	var reserved *values.ReservedKeyError
	_, _, err := values.Merge([]values.Layer{{Origin: "installation", Values: decode(t, `kkp: {cluster: mine}`)}})
	if !errors.As(err, &reserved) || reserved.Origin != "installation" {
		t.Errorf("got %v, want ReservedKeyError of the installation", err)
	}

	var limit *values.LimitError
	big := strings.Repeat("x", values.MaxBytes/2)
	_, _, err = values.Merge([]values.Layer{
		{Origin: "below", Values: map[string]any{"a": big}}, {Origin: "above", Values: map[string]any{"b": big}},
	})
	if !errors.As(err, &limit) {
		t.Errorf("got %v, want LimitError for layers that are too large together", err)
	}
	_, _, other := values.Merge([]values.Layer{
		{Origin: "below", Values: map[string]any{"a": big + "secret"}}, {Origin: "above", Values: map[string]any{"b": big}},
	})
	if other == nil || err == nil || other.Error() != err.Error() {
		t.Errorf("the length of a value below is told: %v, %v", err, other)
	}
	deep := map[string]any{}
	for range values.MaxDepth {
		deep = map[string]any{"a": deep}
	}
	if _, _, err = values.Merge([]values.Layer{{Values: deep}}); !errors.As(err, &limit) {
		t.Errorf("got %v, want LimitError for nested maps", err)
	}
}

func TestWithoutNulls(t *testing.T) {
	got := values.WithoutNulls(decode(t, `{a: null, b: {c: null, d: 1}, e: [null]}`))
	if diff := cmp.Diff(decode(t, `{b: {d: 1}, e: [null]}`), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// AC06: Values that are deep, large, of aliases or with duplicate keys are refused.
func TestHostileValuesAreRefused(t *testing.T) {
	for _, test := range []struct{ why, text string }{
		{"5 MiB", "a: " + strings.Repeat("x", 5<<20)},
		{"10,000 levels of lists", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)},
		{"10,000 levels of maps", strings.Repeat("{a: ", 10_000) + "1" + strings.Repeat("}", 10_000)},
		{"33 levels", strings.Repeat("{a: ", values.MaxDepth+1) + "1" + strings.Repeat("}", values.MaxDepth+1)},
		{"an alias bomb of nodes", "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"},
		{"an alias bomb of bytes", "a: &a " + strings.Repeat("x", 100_000) + "\nb: [*a, *a, *a, *a]\n"},
		{"an alias inside of its anchor", "a: &a [*a]\n"},
		{"a number that is not finite", "a: .nan"},
		{"an infinite number", "a: -.inf"},
		{"a key twice", "a: 1\nb: 2\na: 3\n"},
		{"a key twice in JSON", `{"a": 1, "a": 2}`},
		{"a key twice, once as a number", "1: a\n\"1\": b\n"},
		{"a number twice as a key", "0x10: a\n16: b\n"},
		{"a number twice as a key, once with a fraction", "1: a\n1.0: b\n"},
		{"a boolean twice as a key", "yes: a\n\"true\": b\n"},
		{"a key twice below a merge key", "a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}\n"},
		{"a key twice in what is merged", "a: {<<: {x: 1, x: 2}}\n"},
		{"a key twice that is tagged as a merge key", "!!merge a: 1\n!!merge a: 2\n"},
		{"a merge of no map", "<<: 3\n"},
		{"a map as a key", "{a: b}: c"},
		{"a second document", "a: 1\n---\nb: 2\n"},
		{"a list", "[1, 2]"},
		{"a word", "hello"},
		{"no YAML", "a: [1"},
	} {
		t.Run(test.why, func(t *testing.T) {
			var refused *values.DecodeError
			if _, err := values.Decode([]byte(test.text)); !errors.As(err, &refused) {
				t.Errorf("got %v, want DecodeError", err)
			}
		})
	}
}

// Red when a key that overrides what "<<" merges counts as a duplicate, and when values are others than those that kubectl and Helm read.
func TestMergeKeysAreReadAsByKubectlAndHelm(t *testing.T) {
	const base = "base: &b {x: 1, z: 2}\nother: &o {x: 4, w: 5}\n"
	for why, text := range map[string]string{
		"an override after the merge":  "t: {<<: *b, x: 3}\n",
		"an override before the merge": "t: {x: 3, <<: *b}\n",
		"several maps":                 "t: {<<: [*b, *o], z: null}\n",
		"several merge keys":           "t: {<<: *b, <<: *o}\n",
		"merges in merges":             "u: &u {<<: *b, x: 7}\nt: {<<: *u, z: {<<: *o, x: 8}}\n",
		"a text that looks like one":   "t: {'<<': 1, x: 3}\n",
	} {
		t.Run(why, func(t *testing.T) {
			encoded, err := yaml.YAMLToJSON([]byte(base + text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, string(encoded)), decode(t, base+text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Red when the error about a duplicate lacks the key or its line.
func TestADuplicateIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":                 `values: line 3: has key "a" twice`,
		"t:\n  <<: {x: 1}\n  x: 2\n  x: 3\n": `values: line 4: has key "x" twice`,
		"0x10: 1\n16: 2\n":                   `values: line 2: has key "16" twice`,
	} {
		if _, err := values.Decode([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		why, text string
		want      map[string]any
	}{
		{"nothing is no values", "", map[string]any{}},
		{"null is no values", "null", map[string]any{}},
		{"whole numbers are int64, others float64",
			"{a: 3, b: 3.5, c: 9007199254740993}", map[string]any{"a": int64(3), "b": 3.5, "c": int64(9007199254740993)}},
		{"the meaning is kubectl's", "{a: on, b: '1', y: 2}", map[string]any{"a": true, "b": "1", "true": int64(2)}},
		{"small anchors are fine",
			"a: &x {k: 1}\nb: *x\n", map[string]any{"a": map[string]any{"k": int64(1)}, "b": map[string]any{"k": int64(1)}}},
		{"a document may be closed", "a: 1\n---\n# the end\n---\n", map[string]any{"a": int64(1)}},
		{"numbers and words are keys", "{10: 1, 100: 2, \"010\": 3, 1e2x: 4, yesterday: 5}",
			map[string]any{"10": int64(1), "100": int64(2), "010": int64(3), "1e2x": int64(4), "yesterday": int64(5)}},
		{"keys with a meaning elsewhere have none here",
			"{__proto__: 1, constructor: 2}", map[string]any{"__proto__": int64(1), "constructor": int64(2)}},
	} {
		t.Run(test.why, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decode(t, test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeErrorsHoldNoValue(t *testing.T) {
	for _, text := range []string{
		"a: 1\npassword: *hunter2\n", "a: [hunter2", "hunter2", "password: \"hunter2", "a:\n\thunter2: b", "a: !!int hunter2",
		"a: !!float hunter2", "a: 'b' hunter2", "a: &hunter2", "%hunter2\na: 1",
	} {
		_, err := values.Decode([]byte(text))
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error %q holds the value", text, err)
		}
	}
}

// V07: Paths of form fields with huge indexes or many levels are refused.
func TestPathsOfFormsAreBounded(t *testing.T) {
	for _, test := range []struct {
		text string
		want values.Path
	}{
		{"a", values.Path{{Key: "a"}}},
		{"spec.replicas", values.Path{{Key: "spec"}, {Key: "replicas"}}},
		{`annotations.example\.com/name`, values.Path{{Key: "annotations"}, {Key: "example.com/name"}}},
		{"a[0][12].b", values.Path{{Key: "a"}, {IsIndex: true}, {Index: 12, IsIndex: true}, {Key: "b"}}},
		{`a\[0\]\\`, values.Path{{Key: `a[0]\`}}},
		{"a[1024]", values.Path{{Key: "a"}, {Index: 1024, IsIndex: true}}},
		{"", nil}, {".", nil}, {"a.", nil}, {".a", nil}, {"a..b", nil}, {"[0]", nil}, {"a.[0]", nil}, {"a[0]b", nil}, {"a[", nil},
		{"a]", nil}, {"a[]", nil}, {"a[-1]", nil}, {"a[01]", nil}, {"a[+1]", nil}, {"a[x]", nil}, {`a\`, nil}, {`a\b`, nil},
		{"a[1025]", nil}, {"a[4294967295].b", nil}, {"a[99999999999999999999]", nil},
		{strings.Repeat("a.", values.MaxDepth) + "a", nil}, {"a" + strings.Repeat("[0]", 10_000), nil},
	} {
		got, err := values.ParsePath(test.text)
		var refused *values.PathError
		if test.want == nil && !errors.As(err, &refused) || test.want != nil && err != nil {
			t.Errorf("%.40q: unexpected error %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", test.text, diff)
		}
		if test.want != nil && got.String() != test.text {
			t.Errorf("%q is written as %q", test.text, got.String())
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"a.b", `a\.b[3]`, "a[1024][0].c", `\\\[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := values.ParsePath(text)
		if err != nil {
			return
		}
		again, err := values.ParsePath(path.String())
		if diff := cmp.Diff(path, again); err != nil || diff != "" {
			t.Fatalf("%q: %v %s", text, err, diff)
		}
		tree := map[string]any{}
		if err := path.Set(tree, "here"); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got, found, err := path.Get(tree); got != "here" || !found || err != nil {
			t.Fatalf("%q: set, but not found: %v", text, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: &a [1]\nb: *a", `{"a": {"b": [1.5, null]}}`, "a: |\n  x\n", "<<: {a: 1}", "? a\n: b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, err := values.Decode(data)
		if err != nil {
			return
		}
		if _, _, err := values.Merge([]values.Layer{{Values: decoded}}); err != nil {
			var limit *values.LimitError
			var reserved *values.ReservedKeyError
			if !errors.As(err, &limit) && !errors.As(err, &reserved) {
				t.Fatal(err)
			}
		}
	})
}

func form(fields ...kubermaticv1.FormField) []kubermaticv1.FormField { return fields }

func field(name string, kind kubermaticv1.FormFieldType, required bool) kubermaticv1.FormField {
	return kubermaticv1.FormField{
		DisplayName: "The field", InternalName: name, Type: kind, Required: required, Options: []string{"small", "large"},
	}
}

// AC09: A value whose type is not that of its form field is refused.
func TestValuesOfAnotherTypeAreRefused(t *testing.T) {
	for _, test := range []struct {
		why              string
		field            kubermaticv1.FormField
		given, effective string
		problem          string
	}{
		{"a number", field("a", kubermaticv1.FormNumber, false), `a: 1.5`, `a: 1.5`, ""},
		{"a number as text", field("a", kubermaticv1.FormNumber, false), `a: "1.5"`, `{}`, "must be a number"},
		{"a number as a list", field("a", kubermaticv1.FormNumber, false), `a: [1]`, `{}`, "must be a number"},
		{"a number as a map", field("a", kubermaticv1.FormNumber, false), `a: {b: 1}`, `{}`, "must be a number"},
		{"a whole number", field("a.b[0]", kubermaticv1.FormInteger, true), `a: {b: [3]}`, `a: {b: [3]}`, ""},
		{"a broken number", field("a", kubermaticv1.FormInteger, false), `a: 3.5`, `{}`, "must be a whole number"},
		{"text", field("a", kubermaticv1.FormText, true), `a: b`, `a: b`, ""},
		{"a boolean where text is wanted", field("a", kubermaticv1.FormText, false), `a: true`, `{}`, "must be text"},
		{"a boolean", field("a", kubermaticv1.FormBoolean, true), `a: false`, `a: false`, ""},
		{"text where a boolean is wanted", field("a", kubermaticv1.FormBoolean, false), `a: "true"`, `{}`, "must be true or false"},
		{"an option", field("a", kubermaticv1.FormSelect, true), `a: large`, `a: large`, ""},
		{"no option", field("a", kubermaticv1.FormSelect, true), `a: huge`, `{}`, `must be one of ["small" "large"]`},
		{"nothing given", field("a", kubermaticv1.FormText, false), `{}`, `{}`, ""},
		{"nothing given, set below", field("a", kubermaticv1.FormText, true), `{}`, `a: b`, ""},
		{"required and missing", field("a", kubermaticv1.FormText, true), `{}`, `{}`, "is required and has no value"},
		{"required and empty", field("a", kubermaticv1.FormText, true), `a: ""`, `a: ""`, "is required and has no value"},
		{"required and null", field("a", kubermaticv1.FormText, true), `a: null`, `a: null`, "is required and has no value"},
		{"wrong in a layer below", field("a", kubermaticv1.FormNumber, true), `{}`, `a: b`, "must be a number"},
		{"text where a map should be", field("a.b", kubermaticv1.FormNumber, false), `a: hunter2`, `{}`,
			`can't be read: path "a.b" leads through "a", which is not a map or list`},
		{"a bad path", field("a[4294967295].b", kubermaticv1.FormNumber, false), `{}`, `{}`,
			`has no valid internalName: path "a[4294967295].b" has an index above 1024`},
		{"a type from the future", field("a", "color", false), `a: red`, `{}`, `has type "color", which this release does not know`},
	} {
		t.Run(test.why, func(t *testing.T) {
			err := values.CheckForm(form(test.field), decode(t, test.given), decode(t, test.effective))
			problem := ""
			if refused, ok := errors.AsType[*values.FieldError](err); ok {
				problem = refused.Problem
			}
			if diff := cmp.Diff(test.problem, problem); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if err := values.CheckForm(form(field("a", kubermaticv1.FormText, true)), nil, nil); err != nil {
		t.Errorf("required can't be judged before the effective values are known, got %v", err)
	}
}

func TestFormDefaults(t *testing.T) {
	withDefault := func(name string, kind kubermaticv1.FormFieldType, raw string) kubermaticv1.FormField {
		made := field(name, kind, false)
		made.Default = &runtime.RawExtension{Raw: []byte(raw)}
		return made
	}
	got, err := values.FormDefaults(form(
		withDefault("spec.replicas", kubermaticv1.FormInteger, `2`), withDefault("args[1]", kubermaticv1.FormText, `"x"`),
		field("none", kubermaticv1.FormText, false), withDefault("null", kubermaticv1.FormText, `null`),
	))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, `{spec: {replicas: 2}, args: [null, x]}`), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, wrong := range []kubermaticv1.FormField{
		withDefault("a", kubermaticv1.FormInteger, `"2"`), withDefault("a..b", kubermaticv1.FormInteger, `2`),
		withDefault("a", kubermaticv1.FormText, `{`),
	} {
		var refused *values.FieldError
		if _, err := values.FormDefaults(form(wrong)); !errors.As(err, &refused) {
			t.Errorf("default %s at %q: got %v, want FieldError", wrong.Default.Raw, wrong.InternalName, err)
		}
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	decoded, err := values.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}
