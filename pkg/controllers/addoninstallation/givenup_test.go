package addoninstallation

import (
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// TestWhatWasGivenUpIsReported fails if a rollback within one version names that version as given up and as restored
// (givenUpText without a case for it), or if the cause of its failure reads as a point in time.
func TestWhatWasGivenUpIsReported(t *testing.T) {
	for _, test := range []struct{ failed, back, want string }{
		{"2.0.0", "1.0.0", `upgrade to version "2.0.0" failed; rolled back to version "1.0.0": `},
		{
			"1.0.0", "1.0.0", `a change within version "1.0.0" (of its values, catalogue entry or source) failed; ` +
				"rolled back to the previous revision: ",
		},
	} {
		problem := "3 of 4 objects are healthy"
		text := givenUpText(&revision.Record{Version: test.back, Rollback: &revision.Rollback{Version: test.failed, Problem: problem}})
		if !strings.HasPrefix(text, test.want) || !strings.HasSuffix(text, "it failed: "+problem) {
			t.Errorf("%q after %q: %q", test.failed, test.back, text)
		}
	}
}
