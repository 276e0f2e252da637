package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/status"
)

// wordLimit is the longest word from a user cluster inside one of our sentences, in bytes.
const wordLimit = 200

// causesOf are the causes that a refusal names, as many as the API server likes.
func causesOf(err error) []metav1.StatusCause {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}

// conflictingFields are the fields that a refused apply names, each once; none where the conflict is about the UID.
func conflictingFields(err error) (fields []string) {
	seen := map[string]bool{}
	for _, cause := range causesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict && !seen[cause.Field] {
			seen[cause.Field] = true
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// checkConflicts refuses conflicts about more fields than an object has.
func checkConflicts(it *item, fields []string) error {
	if have := nodes(it.object.Object); len(fields) > have {
		return misbehaves("its refusal of %s names %d fields, and %d were sent", it.key, len(fields), have)
	}
	return nil
}

// nodes counts the maps, lists and values of a tree.
func nodes(value any) (count int) {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	case []any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	}
	return count + 1
}

// fieldsOf names the first fields that a refusal is about.
func fieldsOf(err error) string {
	var fields phrase
	seen := map[string]bool{}
	for _, cause := range causesOf(err) {
		if cause.Field != "" && !seen[cause.Field] {
			seen[cause.Field] = true
			if !fields.add(", ", cause.Field) {
				break
			}
		}
	}
	if fields.Len() == 0 {
		return "a field"
	}
	return "field " + cutText(fields.String())
}

// problems are words for causes whose text would repeat the value.
var problems = map[metav1.CauseType]string{
	metav1.CauseTypeFieldValueInvalid:      "has an invalid value",
	metav1.CauseTypeFieldValueNotSupported: "has a value that is not supported",
	metav1.CauseTypeFieldValueDuplicate:    "is there twice",
	metav1.CauseTypeFieldValueNotFound:     "names something that does not exist",
	metav1.CauseTypeTypeInvalid:            "has a value of the wrong type",
	metav1.CauseTypeFieldValueRequired:     "is required",
	"FieldValueTooLong":                    "is too long",
	"FieldValueTooMany":                    "has too many items",
}

// problemOf says why the API server refuses an object, without repeating what the object holds.
func problemOf(object *unstructured.Unstructured, err error) string {
	var said phrase
	for _, cause := range causesOf(err) {
		words, known := problems[cause.Type]
		if known && cause.Field != "" && !said.add("; ", fmt.Sprintf("field %s %s", excerpt(cause.Field), words)) {
			break
		}
	}
	if said.Len() > 0 {
		return cutText(said.String())
	}
	return answerOf(object, err)
}

// phrase is words put together for one of our sentences; it is full when there is more than is shown.
type phrase struct{ strings.Builder }

// add puts one more behind the others, and says whether there is room for a further one.
func (p *phrase) add(separator, word string) bool {
	if p.Len() > 0 {
		p.WriteString(separator)
	}
	p.WriteString(excerpt(word))
	return p.Len() <= excerptLimit
}

// excerptLimit is how much of a foreign word is looked at, in bytes. Half of what is shown may be characters that are not.
const excerptLimit = 2 * wordLimit

// excerpt is the begin of a foreign word: words may have the length of an answer.
func excerpt(word string) string { return word[:min(len(word), excerptLimit)] }

// cutText makes a word from a user cluster fit for one of our sentences.
func cutText(text string) string {
	clean := status.Line(excerpt(text))
	if len(clean) <= wordLimit {
		return clean
	}
	return strings.ToValidUTF8(clean[:wordLimit], "") + "…"
}
