package values

import (
	"fmt"
	"maps"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Keywords of a form's schema beyond JSON schema, for user interfaces.
const (
	// SchemaOrder is the field's position in the form, from 0: JSON properties have no order.
	SchemaOrder = "x-order"
	// SchemaPath is the field's internal name: the path of its value.
	SchemaPath = "x-path"
)

const (
	schemaDialect = "https://json-schema.org/draft/2020-12/schema"
	// maxSchemaPlaces bounds list places in a form: nested long indexes would make millions.
	maxSchemaPlaces = 4096
)

// FormSchema converts a form to JSON schema (2020-12) for user interfaces: the values that users may write into
// spec.values. It accepts at least everything that CheckForm accepts, except null, which removes a value. A required
// field with a default is not required here. The error is a *FieldError.
func FormSchema(form []kubermaticv1.FormField) (map[string]any, error) {
	root, err := formTree(form)
	if err != nil {
		return nil, err
	}
	schema := root.schema()
	schema["$schema"] = schemaDialect
	return schema, nil
}

// formTree arranges a form's fields by path. The error is a *FieldError.
func formTree(form []kubermaticv1.FormField) (*schemaNode, error) {
	builder := schemaBuilder{root: &schemaNode{properties: map[string]*schemaNode{}}}
	for order, field := range form {
		if err := builder.add(order, field); err != nil {
			return nil, err
		}
	}
	return builder.root, nil
}

type schemaNode struct {
	properties map[string]*schemaNode
	items      []*schemaNode
	field      map[string]any
	// required says that a user must write a value here or below.
	required bool
}

type schemaBuilder struct {
	root   *schemaNode
	places int
}

func (b *schemaBuilder) add(order int, field kubermaticv1.FormField) error {
	path, err := fieldPath(field)
	if err != nil {
		return err
	}
	value, defaults, err := defaultOf(field)
	if err != nil {
		return err
	}
	required := field.Required && !defaults
	node := b.root
	for _, step := range path {
		if node.field != nil {
			return fieldError(field, "has an internalName below that of another field")
		}
		node.required = node.required || required
		if node, err = b.descend(node, step); err != nil {
			return fieldError(field, err.Error())
		}
	}
	if node.kind() != "" {
		return fieldError(field, "has an internalName that another field has, or that is above another field's")
	}
	node.required, node.field = required, fieldSchema(order, field)
	if defaults {
		node.field["default"] = value
	}
	return nil
}

func (b *schemaBuilder) descend(node *schemaNode, step Step) (*schemaNode, error) {
	if step.IsIndex && node.properties != nil || !step.IsIndex && node.items != nil {
		return nil, fmt.Errorf("has an internalName that uses a list as a map, or a map as a list")
	}
	if !step.IsIndex {
		if node.properties == nil {
			node.properties = map[string]*schemaNode{}
		}
		if node.properties[step.Key] == nil {
			node.properties[step.Key] = &schemaNode{}
		}
		return node.properties[step.Key], nil
	}
	for len(node.items) <= step.Index {
		if b.places++; b.places > maxSchemaPlaces {
			return nil, fmt.Errorf("creates lists of more than %d items", maxSchemaPlaces)
		}
		node.items = append(node.items, &schemaNode{})
	}
	return node.items[step.Index], nil
}

// kind is a node's kind so far, or "".
func (n *schemaNode) kind() string {
	switch {
	case n.field != nil:
		return "field"
	case n.properties != nil:
		return "map"
	case n.items != nil:
		return "list"
	}
	return ""
}

// schema is the schema of a node. A list place without a field accepts anything.
func (n *schemaNode) schema() map[string]any {
	switch n.kind() {
	case "field":
		return n.field
	case "map":
		properties, required := map[string]any{}, []any{}
		for _, key := range slices.Sorted(maps.Keys(n.properties)) {
			properties[key] = n.properties[key].schema()
			if n.properties[key].required {
				required = append(required, key)
			}
		}
		schema := map[string]any{"type": "object", "properties": properties}
		if len(required) > 0 {
			schema["required"] = required
		}
		return schema
	case "list":
		items, least := make([]any, len(n.items)), 0
		for i, child := range n.items {
			items[i] = child.schema()
			if child.required {
				least = i + 1
			}
		}
		schema := map[string]any{"type": "array", "prefixItems": items}
		if least > 0 {
			schema["minItems"] = int64(least)
		}
		return schema
	}
	return map[string]any{}
}

func fieldSchema(order int, field kubermaticv1.FormField) map[string]any {
	schema := map[string]any{"title": field.DisplayName, SchemaOrder: int64(order), SchemaPath: field.InternalName}
	if field.HelpText != "" {
		schema["description"] = field.HelpText
	}
	switch field.Type {
	case kubermaticv1.FormNumber, kubermaticv1.FormInteger, kubermaticv1.FormBoolean:
		schema["type"] = string(field.Type)
	case kubermaticv1.FormSelect:
		options := make([]any, len(field.Options))
		for i, option := range field.Options {
			options[i] = option
		}
		schema["type"], schema["enum"] = "string", options
	default:
		schema["type"] = "string"
	}
	if field.Required && schema["type"] == "string" {
		schema["minLength"] = int64(1) // an empty text counts as missing
	}
	return schema
}
