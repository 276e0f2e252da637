package strictlist

import (
	"errors"
	"fmt"

	yamlnodes "go.yaml.in/yaml/v3"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// List is the place of a list, the name of its items, and its limits.
type List struct {
	ConfigMap, Key string
	// Of names the items, such as "core add-ons".
	Of string
	// Items, Bytes and Depth are limits; Depth counts the list and its items.
	Items, Bytes, Depth int
}

// Error describes a problem of a list, and its place.
type Error struct {
	ConfigMap, Key string
	// Place is for example item 2 ("canal"); empty for the whole list.
	Place string
	// Problem never has a value in it.
	Problem string
}

func (e *Error) Error() string {
	place := ""
	if e.Place != "" {
		place = e.Place + ": "
	}
	return fmt.Sprintf("ConfigMap %q, key %q: %s%s", e.ConfigMap, e.Key, place, e.Problem)
}

// Read reads the whole list, or none of it, with a function that reads an item: the name is for messages, and may be
// empty. Errors are an *Error.
func Read[T any](list List, text string, item func(written any) (read T, name string, err error)) ([]T, error) {
	limits := strictyaml.Limits{Bytes: list.Bytes, Depth: list.Depth}
	content, err := strictyaml.Decode([]byte(text), limits)
	if err != nil {
		return nil, list.refused(placeOf(text, limits, err), err)
	}
	written, isList := content.([]any)
	if !isList && content != nil {
		return nil, list.refused("", fmt.Errorf("it is not a list of %s", list.Of))
	}
	if len(written) > list.Items {
		return nil, list.refused("", fmt.Errorf("it has %d items, at most %d are allowed", len(written), list.Items))
	}
	items := make([]T, 0, len(written))
	for i, one := range written {
		read, name, err := item(one)
		if err != nil {
			return nil, list.refused(itemPlace(i, name), err)
		}
		items = append(items, read)
	}
	return items, nil
}

func (l List) refused(place string, why error) *Error {
	return &Error{ConfigMap: l.ConfigMap, Key: l.Key, Place: place, Problem: why.Error()}
}

func itemPlace(index int, name string) string {
	if name == "" {
		return fmt.Sprintf("item %d", index+1)
	}
	return fmt.Sprintf("item %d (%q)", index+1, name)
}

// placeOf is the item with a problem of the document's form; empty if its line does not show it.
func placeOf(text string, limits strictyaml.Limits, problem error) string {
	known, isKnown := errors.AsType[*strictyaml.Error](problem)
	if !isKnown || known.Line == 0 {
		return ""
	}
	limits.Duplicates = true
	_, root, err := strictyaml.DecodeTree([]byte(text), limits)
	if err != nil || root == nil || len(root.Content) != 1 || root.Content[0].Kind != yamlnodes.SequenceNode {
		return ""
	}
	place := ""
	for i, one := range root.Content[0].Content {
		if one.Line <= known.Line {
			place = itemPlace(i, "")
		}
	}
	return place
}
