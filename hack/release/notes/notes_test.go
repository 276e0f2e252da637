package notes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/images/checkout"
)

const changelog = Changelog(`# Changelog

Words.

## Unreleased

- New.

## [1.1.0] - 2026-02-03

### Added

- Old ([page](docs/a.md#b)), [site](https://example.com/x), [above](#top).

## v1.0.0

- First.
`)

// Red when a release bears what is not released, an earlier version's words, or links that lead nowhere.
func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	for _, test := range []struct{ why, version, want string }{
		{"a section", "1.1.0", "# Trellis 1.1.0\n\n### Added\n\n- Old ([page](https://github.com/trellis-addons/trellis/blob/2e/docs/a.md#b)), " +
			"[site](https://example.com/x), [above](#top).\n"},
		{"the last section", "1.0.0", "# Trellis 1.0.0\n\n- First.\n"},
		{"a release without a section", "1.2.0", ""},
		{"before a release", "1.2.0-rc.1", "# Trellis 1.2.0-rc.1\n\n- New.\n"},
	} {
		got, err := changelog.Notes(checkout.Stamp{Version: test.version, Commit: "2e-dirty"})
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want != "") {
			t.Errorf("%s: %v (-want +got):\n%s", test.why, err, diff)
		}
	}
	if diff := cmp.Diff([]string{"1.1.0", "1.0.0"}, changelog.Versions()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
