package values

import (
	"errors"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Limits of values, for one document and for the merged ones.
const (
	MaxBytes = 256 << 10
	// MaxDepth is the deepest nesting of maps and lists.
	MaxDepth = 32
)

// DecodeError says what is wrong with a document of values.
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
// document gives no values. The error is a *DecodeError.
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
	return nil, &DecodeError{Problem: "is no map of keys to values"}
}
