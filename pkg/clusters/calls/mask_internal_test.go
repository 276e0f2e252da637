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

// Red when a part of an object's own name is hidden where the name stands, or when a value is shown beside it.
func TestTheOwnNameIsShownWhole(t *testing.T) {
	for _, test := range []struct{ why, name, value, said, want string }{
		{"a label ends the name", "wrong-external-dns", "external-dns", `Service "wrong-external-dns" is invalid`, `Service "wrong-external-dns" is invalid`},
		{"a value is the name", "external-dns", "external-dns", "external-dns: external-dns", "external-dns: external-dns"},
		{"within a path", "external-dns-0", "external-dns", "shop/external-dns-0 (uid 1)", "shop/external-dns-0 (uid 1)"},
		{"the value alone", "wrong-external-dns", "external-dns", `spec.a: Invalid value: "external-dns"`, `spec.a: Invalid value: "***"`},
		{"both", "wrong-external-dns", "external-dns", "external-dns of wrong-external-dns", "*** of wrong-external-dns"},
		{"a value that goes on behind the name", "db-secret", "secret-hunter2", "db-secret-hunter2", "db-***"},
		{"a value around the name", "hunter", "my-hunter-2", "it is my-hunter-2", "it is ***"},
		{"no name", "", "hunter2", "hunter2", "***"},
	} {
		object := map[string]any{"metadata": map[string]any{"name": test.name, "labels": map[string]any{"app": test.value}}}
		if got := maskValues(test.said, object); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}
