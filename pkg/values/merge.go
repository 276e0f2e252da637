package values

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// ReservedKey at the top of values has the cluster's template data; no layer may set it.
const ReservedKey = "kkp"

// Layer is one source of values.
type Layer struct {
	// Origin of the values, such as "catalogue" or "valuesFrom[0]".
	Origin string
	Values map[string]any
}

// Origins are effective values' layers, by dotted path of each scalar, list, null and empty map.
type Origins map[string]string

// OriginPlatform is the origin of values of the platform that a set grants (ADR 67).
const OriginPlatform = "platform values"

// Of are the merged values of an origin.
func (o Origins) Of(merged map[string]any, origin string) []any {
	return o.of(merged, origin, nil, nil)
}

func (o Origins) of(content map[string]any, origin string, at Path, found []any) []any {
	for key, value := range content {
		here := at.key(key)
		inner, isMap := value.(map[string]any)
		switch {
		case o[here.String()] == origin:
			found = append(found, value)
		case isMap:
			found = o.of(inner, origin, here, found)
		}
	}
	return found
}

// ReservedKeyError says that a layer sets the reserved key.
type ReservedKeyError struct{ Origin, Key string }

func (e *ReservedKeyError) Error() string {
	return fmt.Sprintf("values of %s: key %q is reserved for the cluster's data: choose another", e.Origin, e.Key)
}

// LimitError says that merged values are too large. It does not say how large: some layers are secret, and a user who
// edits another layer would learn the length of each value.
type LimitError struct {
	// What is "bytes" or "levels".
	What string
	Max  int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the merged values have more than %d %s", e.Max, e.What)
}

// Merge merges layers, lowest first. The result shares no data with them. It keeps effective nulls;
// see WithoutNulls. Errors are *ReservedKeyError and *LimitError.
func Merge(layers []Layer) (map[string]any, Origins, error) {
	merged, origins := map[string]any{}, Origins{}
	for _, layer := range layers {
		if _, ok := layer.Values[ReservedKey]; ok {
			return nil, nil, &ReservedKeyError{Origin: layer.Origin, Key: ReservedKey}
		}
		if depth := depthOf(layer.Values); depth > MaxDepth {
			return nil, nil, &LimitError{What: "levels", Max: MaxDepth}
		}
		overlay := overlay{origin: layer.Origin, origins: origins}
		overlay.merge(merged, layer.Values, nil)
	}
	encoded, err := json.Marshal(merged)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the merged values: %w", err)
	}
	if len(encoded) > MaxBytes {
		return nil, nil, &LimitError{What: "bytes", Max: MaxBytes}
	}
	return merged, origins, nil
}

type overlay struct {
	origin  string
	origins Origins
}

func (o overlay) merge(below, above map[string]any, at Path) {
	for key, value := range above {
		here := at.key(key)
		was, isMap := below[key].(map[string]any)
		add, alsoMap := value.(map[string]any)
		if !isMap && alsoMap && len(add) > 0 {
			was = map[string]any{}
			o.forget(below[key], here)
			below[key] = was
		}
		switch {
		case alsoMap && (isMap || len(add) > 0):
			if len(add) > 0 {
				delete(o.origins, here.String())
			}
			o.merge(was, add, here)
		default:
			o.forget(below[key], here)
			below[key] = clone(value)
			o.origins[here.String()] = o.origin
		}
	}
}

func (o overlay) forget(value any, at Path) {
	delete(o.origins, at.String())
	if below, ok := value.(map[string]any); ok {
		for key, child := range below {
			o.forget(child, at.key(key))
		}
	}
}

// WithoutNulls is a copy without null values, for templates that have no defaults to remove.
func WithoutNulls(values map[string]any) map[string]any {
	result := make(map[string]any, len(values))
	for key, value := range values {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			result[key] = WithoutNulls(value)
		default:
			result[key] = clone(value)
		}
	}
	return result
}

func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, child := range value {
			copied[key] = clone(child)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, child := range value {
			copied[i] = clone(child)
		}
		return copied
	}
	return value
}

func depthOf(value any) int {
	deepest := 0
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			deepest = max(deepest, depthOf(child))
		}
	case []any:
		for _, child := range value {
			deepest = max(deepest, depthOf(child))
		}
	default:
		return 0
	}
	return deepest + 1
}

// Limits of values, for one document and for the merged ones.
const (
	MaxBytes = 256 << 10
	// MaxDepth is the deepest nesting of maps and lists.
	MaxDepth = 32
)

// DecodeError describes a problem of a document of values.
type DecodeError struct {
	// Line counts from 1; 0 is unknown.
	Line int
	// Problem contains no value.
	Problem string
}

func (e *DecodeError) Error() string {
	return "values: " + (&strictyaml.Error{Line: e.Line, Problem: e.Problem}).Error()
}

// Decode reads values from YAML or JSON. Whole numbers that fit are int64, others float64. An empty
// document has no values. The error is a *DecodeError.
func Decode(data []byte) (map[string]any, error) {
	content, err := strictyaml.Decode(data, strictyaml.Limits{Bytes: MaxBytes, Depth: MaxDepth})
	if problem, ok := errors.AsType[*strictyaml.Error](err); ok {
		return nil, &DecodeError{Line: problem.Line, Problem: problem.Problem}
	}
	if err != nil {
		return nil, &DecodeError{Problem: "is not valid"}
	}
	switch content := content.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return content, nil
	}
	return nil, &DecodeError{Problem: "is not a map of keys to values"}
}
