package calls

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// problemLimit is the longest text about a refused object, in bytes.
const problemLimit = 600

// problem is the meaning of a type of cause; quotes: its message begins with the value.
type problem struct {
	words  string
	quotes bool
}

var problems = map[metav1.CauseType]problem{
	metav1.CauseTypeFieldValueInvalid:      {"has an invalid value", true},
	metav1.CauseTypeFieldValueNotSupported: {"has a value that is not supported", true},
	metav1.CauseTypeFieldValueDuplicate:    {"has a value twice", true},
	metav1.CauseTypeFieldValueNotFound:     {"names something that does not exist", true},
	metav1.CauseTypeTypeInvalid:            {"has a value of the wrong type", true},
	metav1.CauseTypeFieldValueRequired:     {"is required", false},
	"FieldValueForbidden":                  {"is not allowed", false},
	"FieldValueTooLong":                    {"is too long", false},
	"FieldValueTooMany":                    {"has too many items", true},
}

// ProblemOf says why the API server refuses an object: its message, without the object's values.
func ProblemOf(object *unstructured.Unstructured, err error) string {
	var said phrase
	for _, cause := range CausesOf(err) {
		known, is := problems[cause.Type]
		if !is || cause.Field == "" {
			continue
		}
		shown := "field " + Excerpt(cause.Field) + " " + known.words
		if detail := detailOf(object, cause, known); detail != "" {
			shown += ": " + detail
		}
		if !said.add("; ", shown, 2*problemLimit) {
			break
		}
	}
	if said.Len() == 0 {
		said.add("", schemaProblem(object, err), maskedLimit)
	}
	if said.Len() == 0 {
		said.add("", answerOf(object, err), maskedLimit)
	}
	return text.CutWords(text.Line(said.String()), problemLimit)
}

// detailOf is the reason after the value that a cause quotes. Of Secrets nothing is repeated.
func detailOf(object *unstructured.Unstructured, cause metav1.StatusCause, known problem) string {
	_, detail, found := strings.Cut(cause.Message[:min(len(cause.Message), maskedLimit)], ": ")
	if !found || object.GroupVersionKind() == SecretKind {
		return ""
	}
	if known.quotes {
		detail = behindValue(detail)
	}
	if detail == "" {
		return ""
	}
	return maskWords(object, detail, len(cause.Message) > maskedLimit)
}

// behindValue is the text after a quoted value, or JSON, and a colon; "" if its end can't be determined.
func behindValue(message string) string {
	length := strings.Index(message, ": ")
	if quoted, err := strconv.QuotedPrefix(message); err == nil {
		length = len(quoted)
	} else if strings.HasPrefix(message, "{") || strings.HasPrefix(message, "[") {
		decoder, value := json.NewDecoder(strings.NewReader(message)), json.RawMessage{}
		if decoder.Decode(&value) != nil {
			return ""
		}
		length = int(decoder.InputOffset())
	} else if strings.HasPrefix(message, `"`) {
		return ""
	}
	detail, found := strings.CutPrefix(message[max(0, min(length, len(message))):], ": ")
	if !found {
		return ""
	}
	return detail
}

// apiWord is a value of Kubernetes' own kinds that its API defines, such as ClusterIP.
var apiWord = regexp.MustCompile(`^([A-Z]+[a-z]+){1,5}[A-Z]*$`)

// maskWords hides an object's values. Rules of custom kinds may repeat any of them.
func maskWords(object *unstructured.Unstructured, shown string, isCut bool) string {
	values := contentOf(object.Object)
	if !IsCustom(object.GroupVersionKind().GroupKind()) {
		free := sets.New(freeText(object.Object, nil)...)
		values = slices.DeleteFunc(values, func(value string) bool { return apiWord.MatchString(value) && !free.Has(value) })
	}
	return maskOf(values).over(text.Line(shown), isCut)
}

// freeFields of Kubernetes' own kinds contain text of any kind.
var freeFields = sets.New("data", "binaryData", "annotations", "labels", "env", "args", "command")

// freeText are the texts below such fields.
func freeText(at any, found []string) []string {
	switch at := at.(type) {
	case map[string]any:
		for key, value := range at {
			if freeFields.Has(key) {
				found = leaves(value, found)
			} else {
				found = freeText(value, found)
			}
		}
	case []any:
		for _, value := range at {
			found = freeText(value, found)
		}
	}
	return found
}

// schemaRefusal matches refusals that only server-side apply has: a field that the schema lacks, and two items with
// one key.
var schemaRefusal = regexp.MustCompile(
	`(?:\): |\n\s*)(\.[^\n]{1,400}?): (?:(field not declared in schema)|duplicate entries for key (\[[^\n]{1,200}\]))`)

// schemaProblem describes such a refusal, with the path and what to do; "" for anything else.
func schemaProblem(object *unstructured.Unstructured, err error) string {
	var found []string
	message := err.Error()
	for _, match := range schemaRefusal.FindAllStringSubmatch(message[:min(len(message), maskedLimit)], maxSchemaProblems) {
		path, key := match[1], match[3]
		if IsCustom(object.GroupVersionKind().GroupKind()) { // keys of Kubernetes' own lists are names and numbers
			path, key = maskWords(object, path, false), maskWords(object, key, false)
		}
		if match[2] != "" {
			found = append(found, fmt.Sprintf(
				"field %s is not in the schema of its kind: remove it from the manifest, or move it to the right place", path))
		} else {
			found = append(found, fmt.Sprintf("list %s has the key %s twice: keep one of the two items", path, key))
		}
	}
	return strings.Join(found, "; ")
}

const maxSchemaProblems = 4

var immutable = regexp.MustCompile(
	`(?i)immutable|may not (be )?(change|update)|(can ?not|can't|must not) (be )?(change|update|unset)|` +
		`updates? .{0,200}forbidden|unchangeable|read-?only`)

// IsImmutable says whether the API server's message is the one for an immutable field.
func IsImmutable(err error) bool {
	return slices.ContainsFunc(CausesOf(err), func(cause metav1.StatusCause) bool {
		known := problems[cause.Type]
		_, detail, _ := strings.Cut(cause.Message[:min(len(cause.Message), maskedLimit)], ": ")
		if known.quotes {
			detail = behindValue(detail)
		}
		return immutable.MatchString(detail)
	})
}
