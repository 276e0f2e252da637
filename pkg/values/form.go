package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// FieldError describes a problem of a form's field. It never has the field's value.
type FieldError struct {
	// Field is the internal name, DisplayName is for users.
	Field, DisplayName string
	Problem            string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("field %q (%s) %s", e.DisplayName, e.Field, e.Problem)
}

// FormError has all problems of a form's values, at most one for each field.
type FormError struct{ Fields []*FieldError }

// IsInvalid says whether an error is about values or a form, and not about a call that failed.
func IsInvalid(err error) bool {
	var (
		decode   *DecodeError
		field    *FieldError
		reserved *ReservedKeyError
		tooLarge *LimitError
		marks    *MarksError
	)
	return errors.As(err, &marks) || errors.As(err, &decode) || errors.As(err, &field) ||
		errors.As(err, &reserved) || errors.As(err, &tooLarge)
}

// maxTextBytes bounds the text of a FormError; further fields are counted.
const maxTextBytes = 800

func (e *FormError) Error() string {
	text := ""
	for i, field := range e.Fields {
		shown := field.Error()
		if i > 0 && len(text)+len(shown) > maxTextBytes {
			return fmt.Sprintf("%s; and %d more", text, len(e.Fields)-i)
		}
		if i > 0 {
			text += "; "
		}
		text += shown
	}
	return text
}

func (e *FormError) Unwrap() []error {
	fields := make([]error, len(e.Fields))
	for i, field := range e.Fields {
		fields[i] = field
	}
	return fields
}

// FormDefaults are a form's defaults as a layer of values. The error is a *FieldError.
func FormDefaults(form []kubermaticv1.FormField) (map[string]any, error) {
	defaults := map[string]any{}
	for _, field := range form {
		value, given, err := defaultOf(field)
		if err != nil {
			return nil, err
		}
		if !given {
			continue
		}
		path, err := fieldPath(field)
		if err != nil {
			return nil, err
		}
		if err := path.Set(defaults, value); err != nil {
			return nil, fieldError(field, "has an internalName below that of another field: "+err.Error())
		}
	}
	return defaults, nil
}

func defaultOf(field kubermaticv1.FormField) (value any, given bool, err error) {
	if field.Default == nil || len(field.Default.Raw) == 0 || bytes.Equal(bytes.TrimSpace(field.Default.Raw), []byte("null")) {
		return nil, false, nil
	}
	wrapped, err := Decode(slices.Concat([]byte(`{"default":`), field.Default.Raw, []byte(`}`)))
	if err != nil {
		return nil, false, fieldError(field, "has a default that is not valid JSON")
	}
	if problem := checkValue(field, wrapped["default"]); problem != "" {
		return nil, false, fieldError(field, "has a default that "+problem)
	}
	return wrapped["default"], true, nil
}

func fieldPath(field kubermaticv1.FormField) (Path, error) {
	path, err := ParsePath(field.InternalName)
	switch {
	case err != nil:
		return nil, fieldError(field, "has no valid internalName: "+err.Error())
	case path[0].Key == ReservedKey:
		return nil, fieldError(field, fmt.Sprintf("has an internalName below %q, which is reserved for the cluster's data", ReservedKey))
	}
	return path, nil
}

// CheckFormSpec checks a form as admission of a catalogue does: paths, types, options, defaults,
// and that no field blocks another. The error is a *FieldError.
func CheckFormSpec(form []kubermaticv1.FormField) error {
	for _, field := range form {
		if !slices.Contains(fieldTypes, field.Type) {
			return fieldError(field, unknownType(field))
		}
		if field.Type == kubermaticv1.FormSelect && len(field.Options) == 0 {
			return fieldError(field, "has no options to choose from")
		}
	}
	_, err := FormSchema(form)
	return err
}

var fieldTypes = []kubermaticv1.FormFieldType{
	kubermaticv1.FormNumber, kubermaticv1.FormInteger, kubermaticv1.FormText, kubermaticv1.FormBoolean, kubermaticv1.FormSelect,
}

func unknownType(field kubermaticv1.FormField) string {
	return fmt.Sprintf("has type %q, which this release does not know", field.Type)
}

// CheckForm checks the users' values against types and options, and the effective values also
// against required. Effective is nil if unknown, as at admission of an installation with
// valuesFrom. The error is a *FormError, in the order of the form.
func CheckForm(form []kubermaticv1.FormField, given, effective map[string]any) error {
	var wrong []*FieldError
	for _, field := range form {
		if problem := problemOf(field, given, effective); problem != "" {
			wrong = append(wrong, fieldError(field, problem))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &FormError{wrong}
}

func problemOf(field kubermaticv1.FormField, given, effective map[string]any) string {
	path, err := fieldPath(field)
	if wrong, ok := errors.AsType[*FieldError](err); ok {
		return wrong.Problem
	}
	if problem := checkField(field, path, given); problem != "" || effective == nil {
		return problem
	}
	if problem := checkField(field, path, effective); problem != "" {
		return problem
	}
	if field.Required && !hasValue(path, effective) {
		return "is required and has no value"
	}
	return ""
}

func checkField(field kubermaticv1.FormField, path Path, values map[string]any) string {
	value, found, err := path.Get(values)
	if err != nil {
		return "can't be read: " + err.Error()
	}
	if !found || value == nil {
		return ""
	}
	return checkValue(field, value)
}

func hasValue(path Path, values map[string]any) bool {
	value, found, err := path.Get(values)
	return err == nil && found && value != nil && value != ""
}

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
			return "must be one of " + choices(field.Options)
		}
	default:
		return unknownType(field)
	}
	return ""
}

func choices(options []string) string {
	const most, mostBytes = 12, 400
	shown := min(len(options), most)
	for shown > 1 && len(fmt.Sprintf("%q", options[:shown])) > mostBytes {
		shown--
	}
	text := fmt.Sprintf("%q", options[:shown])
	if more := len(options) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
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

func fieldError(field kubermaticv1.FormField, problem string) *FieldError {
	return &FieldError{Field: field.InternalName, DisplayName: field.DisplayName, Problem: problem}
}
