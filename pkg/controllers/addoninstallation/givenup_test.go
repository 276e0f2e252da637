package addoninstallation

import (
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/revision"
)

// Red when a rollback within one version names that version as given up and as back (givenUpText without a case for it), or when what
// it failed by reads as a point in time.
func TestWhatWasGivenUpIsTold(t *testing.T) {
	for _, test := range []struct{ failed, back, want string }{
		{"2.0.0", "1.0.0", `upgrade to version "2.0.0" failed; rolled back to version "1.0.0": `},
		{
			"1.0.0", "1.0.0", `a change within version "1.0.0" (its values, or what its catalogue or source says) failed; ` +
				"rolled back to what was there before: ",
		},
	} {
		problem := "3 of 4 objects are healthy"
		text := givenUpText(&revision.Record{Version: test.back, Rollback: &revision.Rollback{Version: test.failed, Problem: problem}})
		if !strings.HasPrefix(text, test.want) || !strings.HasSuffix(text, "it failed: "+problem) {
			t.Errorf("%q after %q: %q", test.failed, test.back, text)
		}
	}
}
