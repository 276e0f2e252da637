package calls

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// shortestMasked is the length from which on a value may be a secret; shorter ones are words of everyday.
	shortestMasked = 6
	// maskedLimit is how much of a text is looked at, in bytes: far more than is shown of it.
	maskedLimit = 8 << 10
)

// maskValues takes the values that an object holds out of a text about it, those of its labels and annotations too. What
// identifies the object stays, since the text is of no use without it: a name is no place for a secret. Of a text without end only
// the begin is looked at, once for all values.
func maskValues(shown string, object map[string]any) string {
	var values []string
	for field, value := range object {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			values = leaves(value, values)
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	values = leaves(metadata["annotations"], leaves(metadata["labels"], values))
	begin := shown[:min(len(shown), maskedLimit)]
	// Characters that are not shown go first: a value that they stand in would be whole again without them.
	return text.Message(newMask(values).over(text.Line(begin), len(begin) < len(shown)))
}

// mask is values to take out of texts, in order.
type mask struct {
	values []string
	// within is, for each value, the place of the longest other one that it begins with; -1 for none.
	within []int
}

func newMask(values []string) mask {
	slices.Sort(values)
	m := mask{values: slices.Compact(values)}
	m.within = make([]int, len(m.values))
	var open []int
	for at, value := range m.values {
		for len(open) > 0 && !strings.HasPrefix(value, m.values[open[len(open)-1]]) {
			open = open[:len(open)-1]
		}
		m.within[at] = -1
		if len(open) > 0 {
			m.within[at] = open[len(open)-1]
		}
		open = append(open, at)
	}
	return m
}

// over is a text without values, wherever they overlap. Of one that was cut, what may be the begin of a value at its end goes too.
func (m mask) over(text string, isCut bool) string {
	var shown strings.Builder
	hidden := 0 // up to here, a value stands in the text
	for at := range len(text) {
		length, goesOn := m.longest(text[at:])
		if goesOn && isCut {
			length = len(text) - at
		}
		if length > 0 && at >= hidden {
			shown.WriteString("***")
		}
		hidden = max(hidden, at+length)
		if at >= hidden {
			shown.WriteByte(text[at])
		}
	}
	return shown.String()
}

// longest is the length of the longest value that a text begins with; goesOn says that a longer one may begin there.
func (m mask) longest(text string) (length int, goesOn bool) {
	after, same := slices.BinarySearch(m.values, text)
	if same {
		return len(text), false
	}
	goesOn = after < len(m.values) && strings.HasPrefix(m.values[after], text)
	if after == 0 {
		return 0, goesOn
	}
	// Whatever the text begins with, the value just before it in order begins with too.
	shared := sharedPrefix(m.values[after-1], text)
	for at := after - 1; at >= 0; at = m.within[at] {
		if len(m.values[at]) <= shared {
			return len(m.values[at]), goesOn
		}
	}
	return 0, goesOn
}

func sharedPrefix(a, b string) int {
	for at := range min(len(a), len(b)) {
		if a[at] != b[at] {
			return at
		}
	}
	return min(len(a), len(b))
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

// Masked is a call about an object that failed.
func Masked(object *unstructured.Unstructured, cause error) error {
	if !isAnswer(cause) {
		return cause // the way to the API server: nothing of the object is in it
	}
	return &MaskedError{text: answerOf(object, cause), cause: cause}
}

// answerOf is what the user cluster said about an object, without what the object holds; of a Secret not a word, since its
// values are there in more than one form.
func answerOf(object *unstructured.Unstructured, cause error) string {
	if object.GroupVersionKind() == SecretKind {
		return "its answer is not repeated, since the object is a Secret"
	}
	return maskValues(cause.Error(), object.Object)
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

// forms are a value as it is shown, and as it stands inside of quotes.
func forms(value string) (shown []string) {
	if len(value) < shortestMasked {
		return nil
	}
	quoted := strconv.Quote(value)
	for _, form := range []string{value, quoted[1 : len(quoted)-1]} {
		if line := text.Line(form); len(line) >= shortestMasked && !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	return shown
}
