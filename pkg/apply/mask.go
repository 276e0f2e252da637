package apply

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/status"
)

// shortestMasked is the length from which on a value may be a secret; shorter ones are words of everyday.
const shortestMasked = 6

// maskValues takes the values that an object holds out of a text about it, those of its labels and annotations too. What
// identifies the object stays, since the text is of no use without it: a name is no place for a secret.
func maskValues(text string, object map[string]any) string {
	var values []string
	for field, value := range object {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			values = leaves(value, values)
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	values = leaves(metadata["annotations"], leaves(metadata["labels"], values))
	sort.Slice(values, func(a, b int) bool { return len(values[a]) > len(values[b]) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "***")
	}
	return status.Message(text)
}

// MaskedError is an answer of the user cluster about an object, without what the object holds: the answer of a webhook, or
// of what stands before the API server, may repeat it. It unwraps to the answer.
type MaskedError struct {
	text  string
	cause error
}

func (e *MaskedError) Error() string { return e.text }

// Unwrap gives the answer, to be looked at by its type only.
func (e *MaskedError) Unwrap() error { return e.cause }

// masked is a call about an object that failed.
func masked(it *item, cause error) error {
	if !isAnswer(cause) {
		return cause // the way to the API server: nothing of the object is in it
	}
	return &MaskedError{text: answerOf(it, cause), cause: cause}
}

// answerOf is what the user cluster said about an object, without what the object holds; of a Secret not a word, since its
// values are there in more than one form.
func answerOf(it *item, cause error) string {
	if it.object.GroupVersionKind() == secretKind {
		return "its answer is not repeated, since the object is a Secret"
	}
	return maskValues(cause.Error(), it.object.Object)
}

func leaves(value any, found []string) []string {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			found = leaves(inner, found)
		}
	case []any:
		for _, inner := range typed {
			found = leaves(inner, found)
		}
	case nil, bool:
	default:
		text := fmt.Sprint(typed)
		found = append(found, forms(text)...)
		if lines := strings.Split(text, "\n"); len(lines) > 1 {
			for _, line := range lines {
				found = append(found, forms(strings.TrimSpace(line))...)
			}
		}
	}
	return found
}

// forms are a value as it is, and as it stands inside of quotes.
func forms(text string) []string {
	if len(text) < shortestMasked {
		return nil
	}
	quoted := strconv.Quote(text)
	if inner := quoted[1 : len(quoted)-1]; inner != text {
		return []string{text, inner}
	}
	return []string{text}
}
