package addonset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// TestDeviationsAreReadWithinBounds fails when an entry without author or reason counts, when text of a Cluster's owner has no bound or
// has control characters, and when an annotation beyond the bounds has any effect.
func TestDeviationsAreReadWithinBounds(t *testing.T) {
	const said = `"by":"team-a","why":"own one"`
	for _, test := range []struct {
		why, value string
		want       []addonset.Deviation
	}{
		{"none", "", nil},
		{"no list", `{"item":"web","optOut":true,` + said + `}`, nil},
		{"an item is left out", `[{"item":"web","optOut":true,` + said + `}]`,
			[]addonset.Deviation{{Item: "web", OptOut: true, By: "team-a", Why: "own one"}}},
		{"a version of one set", `[{"set":"tools","item":"web","version":"1.0.0+a",` + said + `}]`,
			[]addonset.Deviation{{Set: "tools", Item: "web", Version: "1.0.0+a", By: "team-a", Why: "own one"}}},
		{"the right one of two entries", `[7,{"item":"web","optOut":true,` + said + `}]`,
			[]addonset.Deviation{{Item: "web", OptOut: true, By: "team-a", Why: "own one"}}},
		{"nobody", `[{"item":"web","optOut":true,"why":"a"}]`, nil},
		{"no reason", `[{"item":"web","optOut":true,"by":"a","why":"\u0007"}]`, nil},
		{"neither", `[{"item":"web",` + said + `}]`, nil},
		{"both", `[{"item":"web","optOut":true,"version":"1.0.0",` + said + `}]`, nil},
		{"a range", `[{"item":"web","version":">= 1",` + said + `}]`, nil},
		{"no item", `[{"optOut":true,` + said + `}]`, nil},
		{"long texts", `[{"item":"web","optOut":true,"by":"` + strings.Repeat("b", 70) + `","why":"a\nb` + strings.Repeat("w", 300) + `"}]`,
			[]addonset.Deviation{{Item: "web", OptOut: true, By: strings.Repeat("b", 64) + "…", Why: "a b" + strings.Repeat("w", 197) + "…"}}},
		{"too many", "[" + strings.Repeat(`{"item":"web","optOut":true,`+said+`},`, 32) + "7]", nil},
		{"too long", `[{"item":"web","optOut":true,` + said + `}]` + strings.Repeat(" ", 8<<10), nil},
	} {
		if diff := cmp.Diff(test.want, addonset.ReadDeviations(test.value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
	all := addonset.ReadDeviations(`[{"set":"other","item":"web","version":"1","by":"a","why":"a"},{"item":"web","version":"2","by":"a","why":"a"}]`)
	for set, want := range map[string]string{"other": "1", "tools": "2"} {
		if got := addonset.DeviationOf(all, set, "web"); got.Version != want {
			t.Errorf("of set %s: %s", set, fmt.Sprint(got))
		}
	}
	if !addonset.DeviationOf(all, "tools", "page").IsNone() {
		t.Error("another item deviates")
	}
}
