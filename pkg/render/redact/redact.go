// Package redact makes text from templates fit for conditions and events: short, on one line, and
// without the values of a rendering. `fail` and `required` print what they are given, such as a
// password.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/templatedata"
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
	collect(data.Variables, found)
	collect(SecretsOf(data), found)
	var redactor Redactor
	for value := range found {
		redactor.values = append(redactor.values, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(redactor.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return redactor
}

// Text is the message without values, control characters and line breaks, cut to MaxText.
func (r Redactor) Text(text string) string {
	text = text[:min(len(text), MaxLook)]
	for _, value := range r.values {
		text = strings.ReplaceAll(text, value, mark)
	}
	var kept strings.Builder
	count := 0
	for _, char := range text {
		switch {
		case unicode.IsSpace(char):
			char = ' '
		case char == utf8.RuneError || !unicode.IsPrint(char):
			continue
		}
		if count++; count == MaxText {
			kept.WriteString(mark)
			break
		}
		kept.WriteRune(char)
	}
	return strings.TrimSpace(kept.String())
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
