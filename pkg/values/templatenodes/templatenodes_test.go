package templatenodes_test

import (
	"slices"
	"testing"
	"text/template/parse"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/values/templatenodes"
)

func TestEach(t *testing.T) {
	for _, test := range []struct {
		why, text string
		want      []string
	}{
		{"plain text calls nothing", "a: b", nil},
		{"a call", "{{ now }}", []string{"now"}},
		{"a call in parentheses, of which a field is taken", "{{ (lookup 1).data }}", []string{"lookup"}},
		{"piped calls", "{{ 1 | first | second }}", []string{"first", "second"}},
		{"conditions, bodies and what is else", "{{ if a }}{{ b }}{{ else if c }}{{ d }}{{ else }}{{ e }}{{ end }}", []string{"a", "b", "c", "d", "e"}},
		{"loops", "{{ range $i, $v := a }}{{ b }}{{ else }}{{ c }}{{ end }}", []string{"a", "b", "c"}},
		{"with", "{{ with a }}{{ b }}{{ else }}{{ c }}{{ end }}", []string{"a", "b", "c"}},
		{"a template that is defined, and what one is given", `{{ define "x" }}{{ a }}{{ end }}{{ template "x" b }}{{ template "x" }}`, []string{"a", "b"}},
		{"a block", `{{ block "x" a }}{{ b }}{{ end }}`, []string{"a", "b"}},
		{"what can't be parsed has nothing", "{{ a }}{{ b", nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			var called []string
			templatenodes.Each(test.text, func(node parse.Node) {
				if function, isFunction := node.(*parse.IdentifierNode); isFunction {
					called = append(called, function.Ident)
				}
			})
			slices.Sort(called)
			if diff := cmp.Diff(test.want, called); diff != "" {
				t.Error(diff)
			}
		})
	}
}
