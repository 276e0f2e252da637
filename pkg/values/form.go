package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// FieldError says which field of a form is wrong, and what with it; never its value.
type FieldError struct {
	// Field is the internal name, DisplayName what users read.
	Field, DisplayName string
	Problem            string
}

// Error implements error.
func (e *FieldError) Error() string {
	return fmt.Sprintf("field %q (%s) %s", e.DisplayName, e.Field, e.Problem)
}

// FormDefaults are the defaults of a form as a layer of values. The error is a *FieldError.
func FormDefaults(form []kubermaticv1.FormField) (map[string]any, error) {
	defaults := map[string]any{}
	for _, field := range form {
		if field.Default == nil || len(field.Default.Raw) == 0 || bytes.Equal(bytes.TrimSpace(field.Default.Raw), []byte("null")) {
			continue
		}
		wrapped, err := Decode(slices.Concat([]byte(`{"default":`), field.Default.Raw, []byte(`}`)))
		if err != nil {
			return nil, fieldError(field, "has a default that is not valid JSON")
		}
		value := wrapped["default"]
		if problem := checkValue(field, value); problem != "" {
			return nil, fieldError(field, "has a default that "+problem)
		}
		path, err := ParsePath(field.InternalName)
		if err != nil {
			return nil, fieldError(field, "has no valid internalName: "+err.Error())
		}
		if err := path.Set(defaults, value); err != nil {
			return nil, fieldError(field, "has an internalName that goes through another field: "+err.Error())
		}
	}
	return defaults, nil
}

// CheckForm checks what users gave against types and options, and the effective values against those and against
// required. Where effective values are not known yet, as at admission of an installation with valuesFrom, they are nil.
// The error is a *FieldError for the first field that is wrong.
func CheckForm(form []kubermaticv1.FormField, given, effective map[string]any) error {
	for _, field := range form {
		path, err := ParsePath(field.InternalName)
		if err != nil {
			return fieldError(field, "has no valid internalName: "+err.Error())
		}
		if err := checkField(field, path, given); err != nil {
			return err
		}
		if effective == nil {
			continue
		}
		if err := checkField(field, path, effective); err != nil {
			return err
		}
		if field.Required && !hasValue(path, effective) {
			return fieldError(field, "is required and has no value")
		}
	}
	return nil
}

func checkField(field kubermaticv1.FormField, path Path, values map[string]any) error {
	value, found, err := path.Get(values)
	if err != nil {
		return fieldError(field, "can't be read: "+err.Error())
	}
	if !found || value == nil {
		return nil
	}
	if problem := checkValue(field, value); problem != "" {
		return fieldError(field, problem)
	}
	return nil
}

func hasValue(path Path, values map[string]any) bool {
	value, found, err := path.Get(values)
	return err == nil && found && value != nil && value != ""
}

// checkValue says what is wrong with a value; empty if nothing is.
func checkValue(field kubermaticv1.FormField, value any) string {
	switch field.Type {
	case kubermaticv1.FormNumber:
		if _, ok := number(value); !ok {
			return "must be a number"
		}
	case kubermaticv1.FormInteger:
		if whole, ok := number(value); !ok || whole != math.Trunc(whole) {
			return "must be a whole number"
		}
	case kubermaticv1.FormText:
		if _, ok := value.(string); !ok {
			return "must be text"
		}
	case kubermaticv1.FormBoolean:
		if _, ok := value.(bool); !ok {
			return "must be true or false"
		}
	case kubermaticv1.FormSelect:
		if text, ok := value.(string); !ok || !slices.Contains(field.Options, text) {
			return fmt.Sprintf("must be one of %q", field.Options)
		}
	default:
		return fmt.Sprintf("has type %q, which this release does not know", field.Type)
	}
	return ""
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	case int:
		return float64(value), true
	case json.Number:
		parsed, err := value.Float64()
		return parsed, err == nil
	}
	return 0, false
}

func fieldError(field kubermaticv1.FormField, problem string) error {
	return &FieldError{Field: field.InternalName, DisplayName: field.DisplayName, Problem: problem}
}
