package form_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/web/form"
)

var spec = []v1.FormField{
	{DisplayName: "Replicas", InternalName: "web.replicas", Type: v1.FormInteger, Default: &runtime.RawExtension{Raw: []byte("2")}},
	{DisplayName: "Name", InternalName: "name", Type: v1.FormText},
	{DisplayName: "Logs", InternalName: `logs\.on`, Type: v1.FormBoolean},
	{DisplayName: "Second", InternalName: "args[1]", Type: v1.FormText},
	{DisplayName: "Size", InternalName: "size", Type: v1.FormSelect, Options: []string{"small", "on"}},
	{DisplayName: "Rate", InternalName: "rate", Type: v1.FormNumber},
}

// Red when a field changes more than its path, a comment is lost, or a text becomes another type.
func TestAFieldChangesItsPathOnly(t *testing.T) {
	const text = "# about all\nname: old # why\nweb:\n  # how many\n  replicas: 1\n  other: [1, 2]\nlast: &a {x: 1}\nagain: *a\n"
	for _, test := range []struct{ why, text, path, value, want string }{
		{"a value that is there", text, "web.replicas", "3", strings.Replace(text, "replicas: 1", "replicas: 3", 1)},
		{"a text keeps its comment", text, "name", "new", strings.Replace(text, "old # why", `"new" # why`, 1)},
		{"a new path", "# first\na: 1\n", "web.replicas", "3", "# first\na: 1\nweb:\n  replicas: 3\n"},
		{"no values yet", "", "name", "x", "name: \"x\"\n"},
		{"an empty map", "{}\n", "name", "x", "name: \"x\"\n"},
		{"a text that looks like a boolean", "", "size", "on", "size: \"on\"\n"},
		{"a text with lines", "", "name", "a: b\n- c", "name: \"a: b\\n- c\"\n"},
		{"a key with a dot", "", `logs\.on`, "true", "logs.on: true\n"},
		{"a list", "args:\n  - a\n", "args[1]", "b", "args:\n  - a\n  - \"b\"\n"},
		{"a list that is missing", "", "args[1]", "b", "args:\n  - null\n  - \"b\"\n"},
		{"a number", "rate: 1\n", "rate", "0.50", "rate: 0.5\n"},
		{"removed", "a: 1\nname: x\n", "name", "", "a: 1\n"},
		{"removed at last", "name: x\n", "name", "", ""},
		{"comments only", "# about all\n", "name", "x", "# about all\n\nname: \"x\"\n"},
		{"nothing to remove", "a: 1\n", "web.replicas", "", "a: 1\n"},
	} {
		t.Run(test.why, func(t *testing.T) {
			sent := url.Values{form.YAMLName: {test.text}}
			for _, one := range form.Of(spec, test.text).Fields {
				sent.Set(form.WasPrefix+one.Path, one.Was)
				sent.Set(form.FieldPrefix+one.Path, one.Was)
			}
			same := form.Posted(spec, sent)
			if same.YAML != test.text || !same.IsValid() {
				t.Errorf("a form without a change makes %q", same.YAML)
			}
			sent.Set(form.FieldPrefix+test.path, test.value)
			got := form.Posted(spec, sent)
			if !got.IsValid() {
				t.Errorf("refused: %+v", got)
			}
			if diff := cmp.Diff(test.want, got.YAML); diff != "" {
				t.Error(diff)
			}
			for _, one := range got.Fields {
				if one.Path == test.path && test.value != "0.50" && one.Value != test.value {
					t.Errorf("the field shows %q", one.Value)
				}
			}
		})
	}
}

// Red when a wrong value is written, is lost from its field, or is repeated in a problem.
func TestWrongInputIsRefusedAtItsField(t *testing.T) {
	for _, test := range []struct{ why, text, path, value, says string }{
		{"no number", "", "web.replicas", "three-canary", "whole number"},
		{"no whole number", "", "web.replicas", "1.5", "whole number"},
		{"no finite number", "", "rate", "NaN", "number"},
		{"no boolean", "", `logs\.on`, "yes-canary", "true or false"},
		{"no option", "", "size", "canary", "must be one of"},
		{"a path that is blocked", "web: canary\n", "web.replicas", "1", "edit the YAML"},
		{"a value that is the same in another place", "name: &x canary\nother: *x\n", "name", "y", "edit the YAML"},
		{"a map that is the same in another place", "web: &x {replicas: 1}\nother: *x\n", "web.replicas", "2", "edit the YAML"},
		{"a map in the place", "name: {a: canary}\n", "name", "x", "edit the YAML"},
	} {
		sent := url.Values{form.YAMLName: {test.text}, form.FieldPrefix + test.path: {test.value}, form.WasPrefix + test.path: {""}}
		got := form.Posted(spec, sent)
		for _, one := range got.Fields {
			if one.Path != test.path {
				continue
			}
			if !strings.Contains(one.Problem, test.says) || strings.Contains(one.Problem, "canary") || one.Value != test.value || got.IsValid() {
				t.Errorf("%s: %+v", test.why, one)
			}
		}
	}
	for _, text := range []string{"a: 1\na: 2\n", "- a\n", "a: [", "a: 1\n---\nb: 2\n", strings.Repeat("a", values.MaxBytes+1)} {
		if got := form.Of(spec, text); got.Problem == "" || got.IsValid() {
			t.Errorf("%.20q is accepted", text)
		}
	}
}

// Red when a value that the user did not touch is lost, because a browser can't show or send it as it is.
func TestABrowserKeepsValues(t *testing.T) {
	const text = "logs.on: maybe\nname: |\n  first\n  second\nsize: huge\nweb:\n  replicas: 1\n"
	sent := url.Values{form.YAMLName: {text}}
	for _, one := range form.Of(spec, text).Fields {
		value := one.Value
		switch {
		case one.Options != nil && !slices.Contains(one.Options, value):
			value = "" // no option is selected
		case one.Options == nil && one.Kind != form.KindLines:
			value = strings.ReplaceAll(value, "\n", "")
		}
		sent.Set(form.FieldPrefix+one.Path, strings.ReplaceAll(value, "\n", "\r\n"))
		sent.Set(form.WasPrefix+one.Path, strings.ReplaceAll(one.Was, "\n", "\r\n"))
	}
	if diff := cmp.Diff(text, form.Posted(spec, sent).YAML); diff != "" {
		t.Error(diff)
	}
	sent.Set(form.FieldPrefix+"web.replicas", "2")
	if diff := cmp.Diff(strings.Replace(text, "replicas: 1", "replicas: 2", 1), form.Posted(spec, sent).YAML); diff != "" {
		t.Error(diff)
	}
	sent.Set(form.FieldPrefix+"name", "first\r\nthird")
	if got := form.Posted(spec, sent).Values["name"]; got != "first\nthird" {
		t.Errorf("the text is %q", got)
	}
}

// Red when the time of a form grows with the product of its fields and the length of its YAML.
func TestManyFieldsAreReadOnce(t *testing.T) {
	text, sent := "", url.Values{}
	var many []v1.FormField
	for i := range 32 {
		name := fmt.Sprintf("field%d", i)
		many = append(many, v1.FormField{InternalName: name, Type: v1.FormText})
		sent.Set(form.FieldPrefix+name, "new")
		text += name + ": old\n"
	}
	sent.Set(form.YAMLName, text)
	few := testing.AllocsPerRun(5, func() { form.Posted(many, url.Values{form.YAMLName: {text}, form.FieldPrefix + "field0": {"new"}}) })
	if all := testing.AllocsPerRun(5, func() { form.Posted(many, sent) }); all > 2*few {
		t.Errorf("32 fields make %.0f allocations, one makes %.0f", all, few)
	}
}

func FuzzPosted(f *testing.F) {
	f.Add("a: 1\n", "name", "x")
	f.Add("{a: [1, {b: 2}]}", "args[1]", "y")
	f.Add("a: &x\n  - 1\nb: *x\n", "web.replicas", "3")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		sent := url.Values{form.YAMLName: {text}, form.FieldPrefix + path: {value}}
		got := form.Posted(spec, sent)
		if again := form.Of(spec, got.YAML); again.Problem != got.Problem {
			t.Errorf("%q becomes %q: %s", text, got.YAML, again.Problem)
		}
	})
}
