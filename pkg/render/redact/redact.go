// Package redact makes text from templates suitable for conditions and events: short, on one line, and without the
// values of a rendering. `fail` and `required` print their arguments, such as a password.
package redact

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

const (
	// MaxText is the maximum number of characters of a message.
	MaxText = 512
	// shortest is the minimum length of values that are removed; shorter ones occur in any text.
	shortest = 4
	// MaxLook is the number of bytes of a text that are read.
	MaxLook = 64 << 10
	mark    = "…"
)

// Redactor has the values of one rendering.
type Redactor struct{ values []string }

// New returns a Redactor of the values, the secrets of the template data, and further secrets.
func New(values map[string]any, data templatedata.Data, secrets ...string) Redactor {
	found := map[string]bool{}
	for _, secret := range secrets {
		collect(secret, found)
	}
	collect(values, found)
	collectNumbers(values, found)
	collect(data.Variables, found)
	collect(templatedata.SecretsOf(data), found)
	var redactor Redactor
	for value := range found {
		forms := append(text.Quoted(value), value, base64.StdEncoding.EncodeToString([]byte(value)))
		for _, form := range forms {
			if form = visible(form); len(form) >= shortest {
				redactor.values = append(redactor.values, form)
			}
		}
	}
	slices.SortFunc(redactor.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return redactor
}

// Text is the message without values, control characters and line breaks, cut to MaxText.
func (r Redactor) Text(text string) string {
	// Invisible characters are removed first: otherwise their later removal could restore a value that they split.
	text = visible(text[:min(len(text), MaxLook)])
	for _, value := range r.values {
		text = strings.ReplaceAll(text, value, mark)
	}
	var kept strings.Builder
	count := 0
	for _, char := range text {
		if count++; count == MaxText {
			kept.WriteString(mark)
			break
		}
		kept.WriteRune(char)
	}
	return strings.TrimSpace(kept.String())
}

// visible is a text on one line, without invisible characters.
func visible(text string) string {
	return strings.Map(func(char rune) rune {
		switch {
		case unicode.IsSpace(char):
			return ' '
		case char == utf8.RuneError || !unicode.IsPrint(char):
			return -1
		}
		return char
	}, text)
}

// shortestNumber is the minimum number of digits of numbers that are removed; shorter ones are ports, lines and
// counts.
const shortestNumber = 6

// collectNumbers collects numbers as templates print them: a password of digits is a number if it is not quoted.
func collectNumbers(content any, found map[string]bool) {
	switch content := content.(type) {
	case map[string]any:
		for _, one := range content {
			collectNumbers(one, found)
		}
	case []any:
		for _, one := range content {
			collectNumbers(one, found)
		}
	case int64: // charts see whole numbers as float64
		addNumber(strconv.FormatInt(content, 10), found)
		addNumber(fmt.Sprint(float64(content)), found)
	case float64:
		addNumber(strconv.FormatFloat(content, 'f', -1, 64), found)
		addNumber(fmt.Sprint(content), found)
	}
}

func addNumber(text string, found map[string]bool) {
	if len(text) >= shortestNumber {
		found[text] = true
	}
}

func collect(value any, found map[string]bool) {
	EachText(value, func(text string) {
		if len(text) >= shortest {
			found[text] = true
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				found[line] = true
			}
		}
	})
}

// EachText visits the texts in maps and lists, except keys.
func EachText(content any, visit func(text string)) {
	switch content := content.(type) {
	case string:
		visit(content)
	case map[string]any:
		for _, one := range content {
			EachText(one, visit)
		}
	case []any:
		for _, one := range content {
			EachText(one, visit)
		}
	}
}
