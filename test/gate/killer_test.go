package gate

import (
	"flag"
	"slices"
	"strconv"
	"testing"

	"github.com/trellis-addons/trellis/test/long"
)

// boundaries of writes, in their order.
func boundaries(writes ...string) (all []Boundary) {
	for _, write := range writes {
		all = append(all, Boundary{Write: write})
	}
	return all
}

// Red where -short takes boundaries that do not count, and where a long run, or -every-kill, leaves some out.
func TestSpreadOverWhatCounts(t *testing.T) {
	counts := func(at Boundary) bool { return at.Write != "status" }
	t.Setenv(long.RotationVariable, "")
	for _, test := range []struct {
		why          string
		short, every bool
		all, want    []Boundary
	}{
		{"-short", true, false, boundaries("status", "gate"), boundaries("gate")},
		{"-short", true, false, boundaries("a", "status", "b", "c", "status", "d"), boundaries("a", "d")},
		{"-short -every-kill", true, true, boundaries("status", "gate"), boundaries("status", "gate")},
		{"long", false, false, boundaries("status", "gate"), boundaries("status", "gate")},
	} {
		set(t, "test.short", test.short)
		set(t, "every-kill", test.every)
		if got := SpreadOver(t, test.all, 2, counts); !slices.Equal(got, test.want) {
			t.Errorf("%s: of %v it chose %v, want %v", test.why, test.all, got, test.want)
		}
	}
}

// set gives a flag a value until the test ends.
func set(t *testing.T, name string, value bool) {
	t.Helper()
	was := flag.Lookup(name).Value.String()
	t.Cleanup(func() { _ = flag.Set(name, was) })
	if err := flag.Set(name, strconv.FormatBool(value)); err != nil {
		t.Fatal(err)
	}
}

// Red where a boundary never has its turn, and where all turns kill on one side of writes.
func TestEachBoundaryHasItsTurn(t *testing.T) {
	for length := 1; length <= 60; length++ {
		var all []Boundary
		for i := range length {
			all = append(all, Boundary{Write: "write", Nth: i / 2, After: i%2 == 1})
		}
		const some = 4
		had, step := map[Boundary]bool{}, length/some|1
		for turn := range uint32(step) {
			chosen := spread(all, some, turn)
			if len(chosen) == 0 || len(chosen) > 2*some {
				t.Errorf("turn %d of %d boundaries takes %d", turn, length, len(chosen))
			}
			for _, at := range chosen {
				had[at] = true
			}
			if first := chosen[0].After; length >= 3*step && !slices.ContainsFunc(chosen, func(at Boundary) bool { return at.After != first }) {
				t.Errorf("turn %d of %d boundaries kills on one side alone: %v", turn, length, chosen)
			}
		}
		if len(had) != length {
			t.Errorf("of %d boundaries, %d have a turn", length, len(had))
		}
	}
}
