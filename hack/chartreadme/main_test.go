package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Red when a value is left out, or a comment is another value's.
func TestValuesAreReported(t *testing.T) {
	values := `# What all are for.

# One
# a|b.
one: "x"

two:
  # Inner.
  inner: {a: 1}
# A part.
three:
  # List.
  list: []
`
	got, err := readme([]byte("name: c\ndescription: A chart.\nkubeVersion: '>= 1.0'\n"), []byte(values))
	want := "<!-- Written by `make generate` from values.yaml. -->\n# c\n\nA chart.\n\nWhat all are for. Kubernetes >= 1.0.\n\n" +
		"| Value | Default | Meaning |\n|---|---|---|\n| `one` | `\"x\"` | One a\\|b. |\n| `two.inner` | `{a: 1}` | Inner. |\n" +
		"| `three` | | A part. |\n| `three.list` | `[]` | List. |\n"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Red when a value without an explanation is accepted.
func TestAValueWithoutACommentIsRefused(t *testing.T) {
	for _, values := range []string{"a: 1\n", "# Explained.\na:\n  b: 1\n"} {
		if _, err := readme(nil, []byte(values)); err == nil || !strings.Contains(err.Error(), "has no comment") {
			t.Errorf("%q: %v", values, err)
		}
	}
}
