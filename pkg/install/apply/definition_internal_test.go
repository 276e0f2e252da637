package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestWhatADefinitionAdds fails if a definition that lacks a version, a field or a type of the existing one counts as
// one that only adds, in any part of a schema; and if one that only adds does not.
func TestWhatADefinitionAdds(t *testing.T) {
	v1 := func(schema string) string {
		return `[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: ` + schema + `}}]`
	}
	const open = `{type: object, x-kubernetes-preserve-unknown-fields: true}`
	spec := func(part string) string {
		return v1(`{type: object, properties: {spec: {type: object, properties: {a: ` + part + `}}}}`)
	}
	served := func(is string) string {
		return `[{name: v1, served: ` + is + `, storage: false, schema: {openAPIV3Schema: ` + open + `}}, ` +
			`{name: v2, served: true, storage: true, schema: {openAPIV3Schema: ` + open + `}}]`
	}
	for name, test := range map[string]struct {
		before, after string
		adds          bool
	}{
		"equal":                   {spec(`{type: string}`), spec(`{type: string}`), true},
		"description and default": {spec(`{type: string}`), spec(`{type: string, description: new, default: x}`), true},
		"a field more": {
			spec(`{type: object, properties: {b: {type: string}}}`),
			spec(`{type: object, properties: {b: {type: string}, c: {type: string}}}`), true,
		},
		"a field less": {
			spec(`{type: object, properties: {b: {type: string}, c: {type: string}}}`),
			spec(`{type: object, properties: {b: {type: string}}}`), false,
		},
		"another type":         {spec(`{type: string}`), spec(`{type: integer}`), false},
		"a version more":       {v1(open), served("true"), true},
		"a version less":       {served("true"), v1(open), false},
		"served no more":       {served("true"), served("false"), false},
		"not served, and gone": {served("false"), v1(open), false},
		"closed":               {spec(open), spec(`{type: object}`), false},
		"opened":               {spec(`{type: object, properties: {b: {type: string}}}`), spec(open), true},
		"elements lose a field": {
			spec(`{type: array, items: {type: object, properties: {b: {type: string}}}}`),
			spec(`{type: array, items: {type: object}}`), false,
		},
		"elements gain a field": {
			spec(`{type: array, items: {type: object}}`),
			spec(`{type: array, items: {type: object, properties: {b: {type: string}}}}`), true,
		},
		"map loses a field": {
			spec(`{type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}`),
			spec(`{type: object, additionalProperties: {type: object}}`), false,
		},
		"map is gone": {spec(`{type: object, additionalProperties: {type: string}}`), spec(`{type: object}`), false},
		"map of anything": {
			spec(`{type: object, additionalProperties: {type: string}}`),
			spec(`{type: object, additionalProperties: true}`), true,
		},
		"map is opened": {spec(`{type: object, additionalProperties: {type: string}}`), spec(open), true},
		"no schema":     {spec(`{type: string}`), `[{name: v1, served: true, storage: true}]`, false},
		"no versions":   {spec(`{type: string}`), `[]`, false},
	} {
		of := func(versions string) *unstructured.Unstructured {
			object := map[string]any{}
			text := `{spec: {group: example.com, scope: Namespaced, names: {kind: A, plural: as}, versions: ` + versions + `}}`
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return &unstructured.Unstructured{Object: object}
		}
		if got := onlyAdds(of(test.before), of(test.after)); got != test.adds {
			t.Errorf("%s: only adds is %t, want %t", name, got, test.adds)
		}
	}
}
