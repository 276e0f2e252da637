package gotemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
)

// noValue is what text/template prints for a missing key.
const noValue = "<no value>"

// refuseNoValue refuses objects in which a missing key was printed.
func refuseNoValue(file file, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if field, found := findNoValue(object.Object, ""); found {
			return &render.TemplateError{File: file.path, Problem: fmt.Sprintf(
				"%s %q has no value for %s: set the key that the template prints there, or give it a default",
				object.GetKind(), object.GetName(), strings.TrimPrefix(field, "."))}
		}
	}
	return nil
}

// findNoValue gives the first field, in the order of names, that reads like a missing key.
func findNoValue(value any, at string) (string, bool) {
	switch value := value.(type) {
	case string:
		return at, strings.Contains(value, noValue)
	case []any:
		for i, child := range value {
			if field, found := findNoValue(child, fmt.Sprintf("%s[%d]", at, i)); found {
				return field, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.Contains(key, noValue) {
				return at, true
			}
			if field, found := findNoValue(value[key], at+"."+key); found {
				return field, true
			}
		}
	}
	return "", false
}
