package values_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

func TestUnknownKeys(t *testing.T) {
	fields := form(field("owner", kubermaticv1.FormText, true), field("spec.replicas", kubermaticv1.FormInteger, false),
		field("ports[0].number", kubermaticv1.FormInteger, false))
	const known = `{image: {tag: "1"}, spec: {paused: false}}`
	neither := "key %q is neither in the form nor in the catalogue's values"
	for _, test := range []struct {
		why, given      string
		want, elsewhere []string
	}{
		{"all are known", `{owner: x, spec: {replicas: 1, paused: true}, image: {tag: "2", other: 1}, ports: [{number: 1}, {x: 1}]}`, nil, nil},
		{
			"a misspelt field", `{ower: x}`,
			[]string{fmt.Sprintf(neither, "ower") + `: did you mean "owner"?`}, []string{`key "ower" is not in the form: did you mean "owner"?`},
		},
		{
			"another case", `{Owner: x}`,
			[]string{fmt.Sprintf(neither, "Owner") + `: did you mean "owner"?`}, []string{`key "Owner" is not in the form: did you mean "owner"?`},
		},
		{
			"two letters in a long one, further down", `{spec: {relpicsa: 1}}`,
			[]string{fmt.Sprintf(neither, "spec.relpicsa") + `: did you mean "spec.replicas"?`},
			[]string{`key "spec.relpicsa" is not in the form: did you mean "spec.replicas"?`},
		},
		{"nothing like any field", `{tolerations: []}`, []string{fmt.Sprintf(neither, "tolerations")}, nil},
		{
			"in a list", `{ports: [{nubmer: 1}]}`,
			[]string{fmt.Sprintf(neither, "ports[0].nubmer") + `: did you mean "ports[0].number"?`},
			[]string{`key "ports[0].nubmer" is not in the form: did you mean "ports[0].number"?`},
		},
		{"a dot in a key", `{"a.b": 1}`, []string{`key "a\\.b" is neither in the form nor in the catalogue's values`}, nil},
		{
			"many", `{a1: 1, a2: 1, a3: 1, a4: 1, a5: 1, a6: 1, a7: 1}`,
			[]string{
				fmt.Sprintf(neither, "a1"), fmt.Sprintf(neither, "a2"), fmt.Sprintf(neither, "a3"), fmt.Sprintf(neither, "a4"),
				fmt.Sprintf(neither, "a5"), "and 2 more unknown keys",
			}, nil,
		},
		{"a value where a map should be", `{spec: hunter2}`, nil, nil},
	} {
		given := decode(t, test.given)
		if diff := cmp.Diff(test.want, values.UnknownKeys(fields, decode(t, known), given, false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
		if diff := cmp.Diff(test.elsewhere, values.UnknownKeys(fields, decode(t, known), given, true)); diff != "" {
			t.Errorf("%s, beside a chart (-want +got):\n%s", test.why, diff)
		}
	}
	if got := values.UnknownKeys(nil, nil, map[string]any{"a": 1}, false); got != nil {
		t.Errorf("without a form: %q", got)
	}
}

// TestUnknownKeysAreBounded gives as many and as long keys as values may have.
func TestUnknownKeysAreBounded(t *testing.T) {
	given := map[string]any{strings.Repeat("é", 10_000): 1}
	for i := range 50_000 {
		given[fmt.Sprintf("owne%d", i)] = i
	}
	for _, elsewhere := range []bool{true, false} {
		reported := values.UnknownKeys(form(field("owner", kubermaticv1.FormText, true)), nil, given, elsewhere)
		if len(reported) == 0 || len(reported) > 6 || len(strings.Join(reported, "")) > 1000 {
			t.Errorf("got %d sentences: %.2000q", len(reported), reported)
		}
	}
}

// TestAllThatIsWrongAtOnce holds every wrong and every missing field in one refusal, and its length
// within a condition.
func TestAllThatIsWrongAtOnce(t *testing.T) {
	fields := form(field("owner", kubermaticv1.FormText, true), field("size", kubermaticv1.FormSelect, false),
		field("replicas", kubermaticv1.FormInteger, false), field("fine", kubermaticv1.FormText, true))
	given := decode(t, `{size: huge, replicas: many, fine: x}`)
	err := values.CheckForm(fields, given, given)
	want := `field "The field" (owner) is required and has no value; field "The field" (size) must be one of ["small" "large"]; ` +
		`field "The field" (replicas) must be a whole number`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var all *values.FormError
	if !errors.As(err, &all) || len(all.Fields) != 3 {
		t.Errorf("got %#v", err)
	}
	var many []kubermaticv1.FormField
	for i := range 32 {
		wide := field(fmt.Sprintf("%s%d", strings.Repeat("x", 100), i), kubermaticv1.FormSelect, true)
		wide.Options = strings.Split(strings.Repeat(strings.Repeat("o", 256)+",", 64), ",")
		many = append(many, wide)
	}
	text := values.CheckForm(many, nil, map[string]any{}).Error()
	if len(text) > 1024 || !strings.HasSuffix(text, "more") {
		t.Errorf("32 fields: %d bytes: %s", len(text), text)
	}
	wrong := map[string]any{}
	for _, one := range many {
		wrong[one.InternalName] = "other"
	}
	text = values.CheckForm(many, wrong, nil).Error()
	if len(text) > 1024 || !strings.Contains(text, "and 64 more") || !strings.HasSuffix(text, "more") {
		t.Errorf("options: %d bytes: %s", len(text), text)
	}
}
