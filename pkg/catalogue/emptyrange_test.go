package catalogue_test

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestAnEmptyRangeIsReported fails when an empty range counts as a range with versions, or the reverse.
func TestAnEmptyRangeIsReported(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "> 1.38, < 1.34": true, ">= 1.34, < 1.38": false, "1.x": false, "*": false, "^2.3": false, "~1.2.3": false, ">1.38": false,
		"< 1.34": false, "= 1.2.3, != 1.2.3": true, ">= 1.2, < 1.2": true, "> 1.2.3, < 1.2.5": false, "> 3, < 2 || 1.x": false, "> 3, < 2 || > 5, < 4": true,
		"1.2 - 1.4": false, "no range": false, ">= 2.28.0-0": false, "< 0.1": false, "!= 1.2": false, "> 1.2.3-rc.1, < 1.2.3": false,
	} {
		if got := catalogue.IsEmptyRange(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
