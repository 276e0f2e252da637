package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kindsPage is every field of our kinds, from their CRDs (ADR 137).
func kindsPage(root string) (string, error) {
	names, err := filepath.Glob(filepath.Join(root, "charts", "trellis-seed", "crds", "*.yaml"))
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", errors.New("chart trellis-seed has no CRDs")
	}
	page := begin("kinds")
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return "", fmt.Errorf("%q: %w", name, err)
		}
		for _, version := range crd.Spec.Versions {
			kind(page, &crd, &version)
		}
	}
	return page.String(), nil
}

func kind(page *document, crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) {
	page.heading(crd.Spec.Names.Kind)
	schema := version.Schema.OpenAPIV3Schema
	short := ""
	if len(crd.Spec.Names.ShortNames) > 0 {
		short = ", short name " + codes(crd.Spec.Names.ShortNames)
	}
	page.paragraph(plain(oneLine(schema.Description)))
	page.paragraph(fmt.Sprintf("`apiVersion: %s/%s`, `kind: %s`, resource %s%s.", crd.Spec.Group, version.Name, crd.Spec.Names.Kind,
		code(crd.Spec.Names.Plural), short))
	page.head("field", "type", "default and limits", "means")
	for _, part := range []string{"spec", "status"} {
		if property, has := schema.Properties[part]; has {
			fields(page, part, &property, slices.Contains(schema.Required, part))
		}
	}
	fmt.Fprintln(page)
}

// fields adds the row of a field and those below it.
func fields(page *document, path string, schema *apiextensionsv1.JSONSchemaProps, isRequired bool) {
	limits := limitsOf(schema)
	if isRequired {
		limits = append([]string{"required"}, limits...)
	}
	page.row(code(path), typeOf(schema), strings.Join(limits, ", "), plain(oneLine(schema.Description)))
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		fields(page, path+"."+name, &property, slices.Contains(schema.Required, name))
	}
	if schema.Items != nil && schema.Items.Schema != nil && below(schema.Items.Schema) {
		element(page, path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil && below(schema.AdditionalProperties.Schema) {
		element(page, path+".*", schema.AdditionalProperties.Schema)
	}
}

// element adds what is below an element, which has no row of its own.
func element(page *document, path string, schema *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		fields(page, path+"."+name, &property, slices.Contains(schema.Required, name))
	}
}

func below(schema *apiextensionsv1.JSONSchemaProps) bool { return len(schema.Properties) > 0 }

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or string"
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeOf(schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(schema.AdditionalProperties.Schema)
	case schema.Format == "date-time":
		return "time"
	case schema.Type == "":
		return "any"
	}
	return schema.Type
}

// limitsOf are the default and the bounds of a field.
func limitsOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	var limits []string
	add := func(format string, value any) { limits = append(limits, fmt.Sprintf(format, value)) }
	if schema.Default != nil {
		add("default `%s`", strings.Trim(string(schema.Default.Raw), `"`))
	}
	if len(schema.Enum) > 0 {
		add("one of %s", codes(enumOf(schema.Enum)))
	}
	if schema.Minimum != nil {
		add("at least %g", *schema.Minimum)
	}
	if schema.Maximum != nil {
		add("at most %.0f", *schema.Maximum)
	}
	if schema.MaxLength != nil {
		add("at most %d characters", *schema.MaxLength)
	}
	if schema.MinItems != nil {
		add("at least %d", *schema.MinItems)
	}
	if schema.MaxItems != nil {
		add("at most %d", *schema.MaxItems)
	}
	if schema.MaxProperties != nil {
		add("at most %d keys", *schema.MaxProperties)
	}
	if slices.ContainsFunc(schema.XValidations, holdsStill) {
		limits = append(limits, "immutable")
	}
	return limits
}

// holdsStill says whether a rule compares with what was there before.
func holdsStill(rule apiextensionsv1.ValidationRule) bool {
	return strings.Contains(rule.Rule, "oldSelf")
}

func enumOf(values []apiextensionsv1.JSON) []string {
	words := make([]string, 0, len(values))
	for _, value := range values {
		var word any
		if err := json.Unmarshal(value.Raw, &word); err == nil {
			words = append(words, fmt.Sprint(word))
		}
	}
	return words
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
