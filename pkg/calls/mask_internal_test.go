package calls

import (
	"strings"
	"testing"
)

// Red when MaskOf leaves out base64, JSON, numbers as people write them, or lines; when a value that is cut at the end is shown; and when
// a mask of nothing changes a text.
func TestMaskOfHidesValuesInAnyText(t *testing.T) {
	mask := MaskOf([]any{map[string]any{"a": "hunter2-and-more", "n": 12345678.0, "s": "no", "j": "aB3&kd92Lm", "l": []any{"first-line\nsecond-line"}}})
	for _, test := range []struct{ why, text, want string }{
		{"a value", "saw hunter2-and-more there", "saw *** there"},
		{"in base64", "saw aHVudGVyMi1hbmQtbW9yZQ==", "saw ***"},
		{"a number", "saw 12345678", "saw ***"},
		{"a line", "saw second-line", "saw ***"},
		{"in JSON, as Go writes it", `saw "aB3\u0026kd92Lm"`, `saw "***"`},
		{"a short one", "no", "no"},
		{"the beginning of one at a cut", "saw hunter2-an…; more", "saw ***…; more"},
		{"split by what can't be seen", "saw hunter2\u200b-and-more", "saw ***"},
	} {
		if got := mask.Text(test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
	if long := mask.Text(strings.Repeat("x", 1024-len(" …")-7) + "hunter2-and-more"); strings.Contains(long, "hunter") {
		t.Errorf("the end of a long text is %q", long[len(long)-20:])
	}
	if got := MaskOf([]any{nil, nil}).Text("as\nit is"); got != "as\nit is" {
		t.Errorf("nothing to hide: %q", got)
	}
}
