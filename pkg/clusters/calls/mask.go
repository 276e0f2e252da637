package calls

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// shortestMasked values may be secrets; shorter ones are common words.
	shortestMasked = 6
	// maskedLimit bounds a text, in bytes: far more than the part of it that is shown.
	maskedLimit = 8 << 10
)

// maskValues replaces an object's values in a text about it, those of labels and annotations too. The object's
// identity stays: a name must not contain a secret.
func maskValues(shown string, object map[string]any) string {
	begin := shown[:min(len(shown), maskedLimit)]
	// Invisible characters are removed first: otherwise a value that they split would be whole again.
	mask := maskOf(contentOf(object))
	metadata, _ := object["metadata"].(map[string]any)
	mask.name, _ = metadata["name"].(string)
	return text.Message(mask.over(text.Line(begin), len(begin) < len(shown)))
}

// contentOf are the values of an object, without its identity.
func contentOf(object map[string]any) (values []string) {
	for field, value := range object {
		if field != "metadata" && field != "kind" && field != "apiVersion" {
			values = leaves(value, values)
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	return leaves(metadata["annotations"], leaves(metadata["labels"], values))
}

// Mask hides values in texts.
type Mask struct {
	values []string
	// within is, for each value, the index of its longest proper prefix; -1 for none.
	within []int
	// name is always shown whole, even if a value is a part of it.
	name string
}

// MaskOf hides the leaves of maps and lists, in base64 too. Keys are shown.
func MaskOf(content any) Mask {
	found := leaves(content, nil)
	for _, value := range found {
		found = append(found, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	return maskOf(found)
}

// cutMark marks the end of a cut text; a value may begin before it.
const cutMark = "…"

// Text returns a text without these values, fit to be shown.
func (m Mask) Text(shown string) string {
	if len(m.values) == 0 {
		return shown
	}
	parts := strings.Split(m.over(text.Message(shown), false), cutMark)
	for i, part := range parts {
		begin := strings.TrimRight(part, " ")
		parts[i] = m.over(begin, i < len(parts)-1) + part[len(begin):]
	}
	return strings.Join(parts, cutMark)
}

func maskOf(values []string) Mask {
	slices.Sort(values)
	m := Mask{values: slices.Compact(values)}
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

// over masks a text, also overlapping values and, at a cut end, the beginning of a value.
func (m Mask) over(text string, isCut bool) string {
	var shown strings.Builder
	hidden, named := 0, 0 // up to here the text is masked, and a name
	for at := range len(text) {
		if m.name != "" && strings.HasPrefix(text[at:], m.name) {
			named = at + len(m.name)
		}
		length, goesOn := m.longest(text[at:])
		if goesOn && isCut {
			length = len(text) - at
		}
		if at+length <= named {
			length = 0
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

// longest is the length of the longest value at the beginning; goesOn: a longer one may begin.
func (m Mask) longest(text string) (length int, goesOn bool) {
	after, same := slices.BinarySearch(m.values, text)
	if same {
		return len(text), false
	}
	goesOn = after < len(m.values) && strings.HasPrefix(m.values[after], text)
	if after == 0 {
		return 0, goesOn
	}
	// Every value that begins the text is also a prefix of the previous value in the order.
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

// MaskedError is an answer without the object's content, which webhooks repeat. It unwraps to it.
type MaskedError struct {
	text  string
	cause error
}

func (e *MaskedError) Error() string { return e.text }

// Unwrap returns the answer; use only its type.
func (e *MaskedError) Unwrap() error { return e.cause }

// Masked is the error of a failed call about an object.
func Masked(object *unstructured.Unstructured, cause error) error {
	if !IsAnswer(cause) {
		return cause // no answer: it has no part of the object
	}
	return &MaskedError{text: answerOf(object, cause), cause: cause}
}

// answerOf has no content of the object; of a Secret no text at all, as its values have several forms.
func answerOf(object *unstructured.Unstructured, cause error) string {
	if object.GroupVersionKind() == SecretKind {
		return "its answer is not shown, since the object is a Secret"
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
		if number, isNumber := typed.(float64); isNumber { // as users wrote it: 12345678, and not 1.2345678e+07
			found = append(found, forms(strconv.FormatFloat(number, 'f', -1, 64))...)
		}
		if lines := strings.Split(text, "\n"); len(lines) > 1 {
			for _, line := range lines {
				found = append(found, forms(strings.TrimSpace(line))...)
			}
		}
	}
	return found
}

// forms are the forms of a value: as shown, and inside quotes of Go and of JSON.
func forms(value string) (shown []string) {
	if len(value) < shortestMasked {
		return nil
	}
	for _, form := range append(text.Quoted(value), value) {
		if line := text.Line(form); len(line) >= shortestMasked && !slices.Contains(shown, line) {
			shown = append(shown, line)
		}
	}
	return shown
}
