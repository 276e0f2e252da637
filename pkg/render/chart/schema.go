package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/render"
)

const (
	// schemaURL is the URL of a schema itself. Nothing is read from there.
	schemaURL = "chart:///values.schema.json"
	// maxSchemaDepth keeps the checker's recursion small (CVE-2025-32387).
	maxSchemaDepth = 128
	maxProblems    = 5
)

// errOutside is the error of every reference that leaves a schema.
var errOutside = errors.New("refers to another file or URL")

// nowhere loads nothing that a schema refers to.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errOutside }

// schemaError has only text of the schema and keys of the values: no part of it is redacted, even if a value has the same text.
type schemaError struct{ render.ChartError }

// checkSchemas checks values against the schemas of a chart and its dependencies, as Helm does. At are the keys that lead to the values.
func checkSchemas(chart *helmchart.Chart, values map[string]any, at ...string) error {
	if chart.Schema != nil {
		schema, err := compile(chart)
		if err != nil {
			return err
		}
		if err := schema.Validate(values); err != nil {
			problem := fmt.Sprintf("does not accept the values: %s: %s", explain(err, at), correctValues)
			return &schemaError{render.ChartError{Chart: chart.Name(), Problem: problem}}
		}
	}
	for _, dependency := range chart.Dependencies() {
		switch below := values[dependency.Name()].(type) {
		case nil:
		case map[string]any:
			if err := checkSchemas(dependency, below, append(slices.Clip(at), dependency.Name())...); err != nil {
				return err
			}
		default:
			return &render.ChartError{Chart: dependency.Name(), Problem: "does not accept the values: they must be a map"}
		}
	}
	return nil
}

func compile(chart *helmchart.Chart) (*jsonschema.Schema, error) {
	problem := func(text string) error {
		return &render.ChartError{Chart: chart.Name(), Problem: "has a values.schema.json that " + text, Stage: render.StageContent}
	}
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(chart.Schema))
	if err != nil {
		return nil, problem("is not valid JSON")
	}
	if deeper(content, maxSchemaDepth) {
		return nil, problem(fmt.Sprintf("is nested deeper than %d", maxSchemaDepth))
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(schemaURL, content); err != nil {
		return nil, problem("is not a schema")
	}
	schema, err := compiler.Compile(schemaURL)
	switch {
	case errors.Is(err, errOutside):
		return nil, problem(errOutside.Error() + ": write the referenced schema into the file")
	case err != nil:
		return nil, problem("is not a schema")
	}
	return schema, nil
}

func deeper(value any, than int) bool {
	isDeeper := func(child any) bool { return deeper(child, than-1) }
	switch value := value.(type) {
	case map[string]any:
		return than < 0 || slices.ContainsFunc(slices.Collect(maps.Values(value)), isDeeper)
	case []any:
		return than < 0 || slices.ContainsFunc(value, isDeeper)
	}
	return than < 0
}

// explain lists the paths of wrong values and the schema's requirements, without values.
func explain(err error, at []string) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return "they can't be checked"
	}
	var problems []string
	for _, leaf := range leaves(invalid) {
		path := strings.Join(slices.Concat([]string{"values"}, at, leaf.InstanceLocation), ".")
		problems = append(problems, path+" "+wanted(leaf))
	}
	slices.Sort(problems) // maps have no order, and equal problems need equal texts
	return text.First(problems, maxProblems)
}

func leaves(err *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(err.Causes) == 0 {
		return []*jsonschema.ValidationError{err}
	}
	var found []*jsonschema.ValidationError
	for _, cause := range err.Causes {
		found = append(found, leaves(cause)...)
	}
	return found
}

func wanted(err *jsonschema.ValidationError) string {
	switch problem := err.ErrorKind.(type) {
	case *kind.Type:
		return "must be " + strings.Join(problem.Want, " or ")
	case *kind.Required:
		return fmt.Sprintf("must have %q", problem.Missing)
	case *kind.AdditionalProperties:
		return fmt.Sprintf("must not have %q", problem.Properties)
	}
	if text := bound(err.ErrorKind); text != "" {
		return text
	}
	return fmt.Sprintf("does not meet %q of the schema", strings.Join(err.ErrorKind.KeywordPath(), "/"))
}

// bound describes a schema's requirement of a value; empty if it does not fit on a line.
func bound(problem jsonschema.ErrorKind) string {
	switch problem := problem.(type) {
	case *kind.Maximum:
		return "must be at most " + number(problem.Want)
	case *kind.Minimum:
		return "must be at least " + number(problem.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(problem.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(problem.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(problem.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", problem.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", problem.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", problem.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", problem.Want)
	case *kind.Pattern:
		return fmt.Sprintf("must match %q", cut(problem.Want))
	case *kind.Format:
		return fmt.Sprintf("must be of format %q", cut(problem.Want))
	case *kind.Enum:
		return "must be one of " + enumerated(problem.Want)
	case *kind.Const:
		return "must be " + enumerated([]any{problem.Want})
	}
	return ""
}

// maxBound is the maximum length of a schema's text in a problem, in bytes.
const maxBound = 120

func cut(whole string) string { return text.Cut(whole, maxBound) }

func number(bound *big.Rat) string {
	if bound.IsInt() && bound.Num().IsInt64() {
		return bound.Num().String()
	}
	text, _ := bound.Float64()
	return strconv.FormatFloat(text, 'g', -1, 64)
}

// enumerated lists the values that a schema allows, as JSON, up to a readable number.
func enumerated(values []any) string {
	const most = 12
	listed := ""
	for i, value := range values {
		encoded, err := json.Marshal(value)
		if err != nil {
			return "the values that the schema lists"
		}
		if i > 0 && (i == most || len(listed)+len(encoded) > maxBound) {
			return fmt.Sprintf("%s and %d more", listed, len(values)-i)
		}
		if i > 0 {
			listed += ", "
		}
		listed += cut(string(encoded))
	}
	return listed
}
