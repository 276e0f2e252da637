// Package redact makes text from templates fit for conditions and events: short, on one line, and without the values that
// went into a rendering. `fail` and `required` print what they are told, and that may be a password.
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
	// shortest value that is looked for; shorter ones occur in any text.
	shortest = 4
	// MaxLook is how much of a text is looked through, in bytes: enough for what is kept.
	MaxLook = 64 << 10
	mark    = "…"
)

// Redactor knows the values of one rendering.
type Redactor struct{ values []string }

// New knows the given values, the secrets of the template data, and further secrets.
func New(values map[string]any, data templatedata.Data, secrets ...string) Redactor {
	found := map[string]bool{}
	for _, secret := range secrets {
		collect(secret, found)
	}
	collect(values, found)
	collect(data.Variables, found)
	collectSecrets(data, found)
	var redactor Redactor
	for value := range found {
		redactor.values = append(redactor.values, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(redactor.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return redactor
}

// Text is the message without values, control characters and line breaks, and of at most MaxText characters.
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

// collect finds the text of values, as a whole and line by line.
func collect(value any, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			collect(child, found)
		}
	case []any:
		for _, child := range value {
			collect(child, found)
		}
	case string:
		if len(value) >= shortest {
			found[value] = true
		}
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				found[line] = true
			}
		}
	}
}

func collectSecrets(data templatedata.Data, found map[string]bool) {
	secrets := []any{data.Credentials, data.Cluster.Kubeconfig, data.Cluster.Address.AdminToken}
	encoded, err := json.Marshal(secrets)
	if err != nil {
		return
	}
	var content any
	if err := json.Unmarshal(encoded, &content); err == nil {
		collect(content, found)
	}
}
