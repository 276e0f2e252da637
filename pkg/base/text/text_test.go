package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

func TestMessage(t *testing.T) {
	for _, test := range []struct{ why, text, want string }{
		{"plain text stays", "object \"a\" exists", "object \"a\" exists"},
		{"one line", "a\nb\tc", "a b c"},
		{"terminal escapes go", "a\x1b[31mb\x00", "a[31mb"},
		{"broken UTF-8 goes", "a\xff\xfeb", "ab"},
		{"right-to-left override goes", "a\u202eb", "ab"},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := text.Message(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Red when names beyond the limit are shown, or not counted.
func TestNames(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := text.Names(names, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMessageIsCutAtARune(t *testing.T) {
	got := text.Message(strings.Repeat("ü", 5000))
	if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasSuffix(got, " …") {
		t.Errorf("message of %d bytes, valid %t", len(got), utf8.ValidString(got))
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		why, text, want string
		most            int
	}{
		{"it fits", "abc", "abc", 3},
		{"it is longer", "abcd", "abc…", 3},
		{"the end is inside of a rune", "aü", "a…", 2},
		{"nothing", "", "", 0},
	} {
		if got := text.Cut(test.text, test.most); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}
