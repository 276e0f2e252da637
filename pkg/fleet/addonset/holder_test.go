package addonset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// Of sets that want the same, one that comes with the next version of Kubernetes goes before those that are about the cluster already,
// whatever their claims; among its like the first has it. Red where the order of claims alone decides.
func TestHolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, wanting, want string }{
		{"nobody wants it", "", ""},
		{"none is about the cluster", "other", ""},
		{"the first of those that are", "other here-1 here-2", "here-1"},
		{"one that comes goes before", "here-1 next-1", "next-1"},
		{"the first of those that come", "here-1 other next-1 next-2", "next-1"},
	} {
		is := func(prefix string) func(string) bool {
			return func(set string) bool { return strings.HasPrefix(set, prefix) }
		}
		got, isThere := addonset.Holder(strings.Fields(test.wanting), is("next"), is("here"))
		if got != test.want || isThere != (test.want != "") || isThere && !slices.Contains(strings.Fields(test.wanting), got) {
			t.Errorf("%s: %q, %t", test.why, got, isThere)
		}
	}
}
