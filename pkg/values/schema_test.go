package values_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

func schemaOf(t *testing.T, fields ...kubermaticv1.FormField) map[string]any {
	t.Helper()
	schema, err := values.FormSchema(fields)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestFormSchema(t *testing.T) {
	replicas := field("spec.replicas", kubermaticv1.FormInteger, true)
	replicas.HelpText, replicas.Default = "How many.", &runtime.RawExtension{Raw: []byte(`2`)}
	schema := schemaOf(t, replicas,
		field(`annotations.example\.com/owner`, kubermaticv1.FormText, true), field("spec.size", kubermaticv1.FormSelect, false),
		field("args[1].on", kubermaticv1.FormBoolean, true), field("ratio", kubermaticv1.FormNumber, false))
	got, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "$schema": "https://json-schema.org/draft/2020-12/schema",
 "properties": {
  "annotations": {
   "properties": {
    "example.com/owner": {
     "minLength": 1,
     "title": "The field",
     "type": "string",
     "x-order": 1,
     "x-path": "annotations.example\\.com/owner"
    }
   },
   "required": [
    "example.com/owner"
   ],
   "type": "object"
  },
  "args": {
   "minItems": 2,
   "prefixItems": [
    {},
    {
     "properties": {
      "on": {
       "title": "The field",
       "type": "boolean",
       "x-order": 3,
       "x-path": "args[1].on"
      }
     },
     "required": [
      "on"
     ],
     "type": "object"
    }
   ],
   "type": "array"
  },
  "ratio": {
   "title": "The field",
   "type": "number",
   "x-order": 4,
   "x-path": "ratio"
  },
  "spec": {
   "properties": {
    "replicas": {
     "default": 2,
     "description": "How many.",
     "title": "The field",
     "type": "integer",
     "x-order": 0,
     "x-path": "spec.replicas"
    },
    "size": {
     "enum": [
      "small",
      "large"
     ],
     "title": "The field",
     "type": "string",
     "x-order": 2,
     "x-path": "spec.size"
    }
   },
   "type": "object"
  }
 },
 "required": [
  "annotations",
  "args"
 ],
 "type": "object"
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFormSchemaAgreesWithCheckForm: what the check takes from a user, the schema takes, and the other way round.
func TestFormSchemaAgreesWithCheckForm(t *testing.T) {
	form := form(
		field("a.number", kubermaticv1.FormNumber, false), field("a.whole", kubermaticv1.FormInteger, true),
		field("b[1]", kubermaticv1.FormText, false), field("c", kubermaticv1.FormSelect, false),
		field("d", kubermaticv1.FormBoolean, true), field(`e\.f.g`, kubermaticv1.FormText, true),
	)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("form.json", schemaOf(t, form...)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("form.json")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	choices := []any{int64(1), 1.5, 2.0, "", "small", "text", true, []any{"x"}, map[string]any{"y": "z"}}
	agreed := map[bool]int{}
	for range 4000 {
		given := map[string]any{}
		for _, one := range form {
			if random.IntN(10) == 0 {
				continue
			}
			path, err := values.ParsePath(one.InternalName)
			if err != nil {
				t.Fatal(err)
			}
			value := map[kubermaticv1.FormFieldType]any{
				kubermaticv1.FormNumber: 1.5, kubermaticv1.FormInteger: int64(3), kubermaticv1.FormText: "t",
				kubermaticv1.FormBoolean: false, kubermaticv1.FormSelect: "large",
			}[one.Type]
			if random.IntN(6) == 0 {
				value = choices[random.IntN(len(choices))]
			}
			if err := path.Set(given, value); err != nil {
				t.Fatal(err)
			}
		}
		checked, validated := values.CheckForm(form, given, given), schema.Validate(given)
		if (checked == nil) != (validated == nil) {
			t.Fatalf("%v: CheckForm says %v, the schema %v", given, checked, validated)
		}
		agreed[checked == nil]++
	}
	if agreed[true] < 100 || agreed[false] < 100 {
		t.Errorf("the cases are one-sided: %v", agreed)
	}
}

// AC07: A form whose fields lead to reserved keys is refused.
func TestFormsThatSetReservedKeysAreRefused(t *testing.T) {
	text := kubermaticv1.FormText
	wrongDefault := field("a", kubermaticv1.FormInteger, false)
	wrongDefault.Default = &runtime.RawExtension{Raw: []byte(`"hunter2"`)}
	noOptions := field("a", kubermaticv1.FormSelect, false)
	noOptions.Options = nil
	for _, test := range []struct {
		why, problem string
		form         []kubermaticv1.FormField
	}{
		{"a good form", "", form(field("a.b", text, true), field("a.c", text, true), field("l[0].x", text, false), field("l[2]", text, false))},
		{"a field inside of another", "has an internalName below that of another field", form(field("a", text, false), field("a.b", text, false))},
		{"a field around another", "has an internalName that another field has, or that is above another field's", form(field("a.b", text, false), field("a", text, false))},
		{"a field twice", "has an internalName that another field has, or that is above another field's", form(field("a", text, false), field("a", text, false))},
		{"a list and a map", "has an internalName that uses a list as a map, or a map as a list",
			form(field("a[0]", text, false), field("a.b", text, false))},
		{"long lists in long lists", "creates lists of more than 4096 items",
			form(field("a[1024][1024][1024][1024]", text, false))},
		{"the cluster's data", `has an internalName below "kkp", which is reserved for the cluster's data`, form(field("kkp.Cluster.Name", text, false))},
		{"a bad path", `has no valid internalName: path "a..b" has an empty key`, form(field("a..b", text, false))},
		{"a wrong default", "has a default that must be a whole number", form(wrongDefault)},
		{"a type from the future", `has type "color", which this release does not know`, form(field("a", "color", false))},
		{"nothing to choose from", "has no options to choose from", form(noOptions)},
	} {
		err, problem := values.CheckFormSpec(test.form), ""
		if refused := (&values.FieldError{}); errors.As(err, &refused) {
			problem = refused.Problem
		}
		if diff := cmp.Diff(test.problem, problem); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func ExampleFormSchema() {
	schema, err := values.FormSchema([]kubermaticv1.FormField{
		{DisplayName: "Replicas", InternalName: "spec.replicas", Type: kubermaticv1.FormInteger, Required: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(schema["properties"])
	fmt.Println(string(text), err)
	// Output: {"spec":{"properties":{"replicas":{"title":"Replicas","type":"integer","x-order":0,"x-path":"spec.replicas"}},"required":["replicas"],"type":"object"}} <nil>
}
