package manager

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMemoryHasALimit: a manager collects before the container's limit ends it (H4), and leaves room for renderers.
func TestMemoryHasALimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		why          string
		flags        Flags
		environment  string
		others, want int64
	}{
		{why: "alone in its container", flags: Flags{memory: 1000 << 20}, want: 900 << 20},
		{why: "beside renderers", flags: Flags{memory: 2560 << 20}, others: 1536 << 20, want: (1024 << 20) / 10 * 9},
		{why: "beside more than there is room for", flags: Flags{memory: 1000 << 20}, others: 990 << 20, want: 225 << 20},
		{why: "nobody said how much there is", want: math.MaxInt64},
		{why: "an operator's own limit stays", flags: Flags{memory: 1000 << 20}, environment: "1GiB", want: math.MaxInt64},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", test.environment)
			debug.SetMemoryLimit(math.MaxInt64)
			test.flags.LimitMemory(test.others)
			if diff := cmp.Diff(test.want, debug.SetMemoryLimit(-1)); diff != "" {
				t.Errorf("limit (-want +got):\n%s", diff)
			}
		})
	}
}
