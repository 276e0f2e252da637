package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// TestText (AC12): Long texts of renderers are cut. The test fails when invisible characters are removed last (which
// restores a value that they split), and when numbers or the quoted form of a text are not collected.
func TestText(t *testing.T) {
	data := templatedata.Data{
		Variables:   map[string]any{"flag": "flag-value"},
		Credentials: templatedata.Credentials{Hetzner: templatedata.TokenCredentials{Token: "token-value"}},
		Cluster: templatedata.ClusterData{
			Kubeconfig: "kind: Config\nusers: all", Address: templatedata.ClusterAddress{AdminToken: "admin-value"},
		},
	}
	redactor := redact.New(map[string]any{"a": []any{map[string]any{"b": "hunter2"}}, "c": "hunter2-and-more", "d": "no",
		"e": int64(12345678), "f": 87654321.0, "g": `quo"ted`, "h": int64(8443), "i": "aB3&kd92Lm"}, data)
	for _, test := range []struct{ why, text, want string }{
		{"a value", "password hunter2 is bad", "password … is bad"},
		{"the longer of two values", "hunter2-and-more", "…"},
		{"a value in base64", base64.StdEncoding.EncodeToString([]byte("hunter2")) + "!", "…!"},
		{"a secret of the cluster", "token-value admin-value flag-value", "… … …"},
		{"a line of a secret", "it says users: all here", "it says … here"},
		{"values too short to be told apart from words", "nothing is known", "nothing is known"},
		{"a number, also as charts see it", "12345678 1.2345678e+07 87654321 8.7654321e+07", "… … … …"},
		{"a port", "port 8443", "port 8443"},
		{"a value in quotes", `"quo\"ted"`, `"…"`},
		{"a value in JSON", `{"i":"aB3\u0026kd92Lm"}`, `{"i":"…"}`},
		{"a value that invisible characters split", "hun\u200bter2", "…"},
		{"line breaks and control characters", "one\r\n\ttwo\x1b[31m\x00", "one   two[31m"},
		{"bytes that are no text", "a\xff\xfeb", "ab"},
	} {
		if got := redactor.Text(test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
	long := redactor.Text(strings.Repeat("ä", 5_000_000))
	if count := utf8.RuneCountInString(long); count != redact.MaxText || !strings.HasSuffix(long, "…") {
		t.Errorf("a long text keeps %d characters", count)
	}
}
