// Package redact makes text from templates fit for conditions and events: short, on one line, and
// without the values of a rendering. `fail` and `required` print what they are given, such as a
// password.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// MaxText is the most characters that a message keeps.
	MaxText = 512
	// shortest value that is removed; shorter ones occur in any text.
	shortest = 4
	// MaxLook is how much of a text is read, in bytes.
	MaxLook = 64 << 10
	mark    = "…"
)

// Redactor knows the values of one rendering.
type Redactor struct{ values []string }

// New knows the values, the secrets of the template data, and further secrets.
func New(values map[string]any, data templatedata.Data, secrets ...string) Redactor {
	found := map[string]bool{}
	for _, secret := range secrets {
		collect(secret, found)
	}
	collect(values, found)
	collectNumbers(values, found)
	collect(data.Variables, found)
	collect(SecretsOf(data), found)
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
	// Invisible characters go first: without them, a value that they split would be whole again.
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

// visible is a text on one line, without what can't be seen.
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

// shortestNumber is removed, in digits; shorter ones are ports, lines and counts.
const shortestNumber = 6

// collectNumbers collects numbers as templates print them: a password of digits is one, if nobody
// put it into quotes.
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

// EachText visits the texts in maps and lists, but for keys.
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

// SecretsOf are the secrets of template data, as maps, lists and texts.
func SecretsOf(data templatedata.Data) (secrets any) {
	encoded, err := json.Marshal([]any{data.Credentials, data.Cluster.Kubeconfig, data.Cluster.Address.AdminToken})
	if err != nil || json.Unmarshal(encoded, &secrets) != nil {
		return nil
	}
	return secrets
}
