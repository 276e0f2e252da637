package gate

import (
	"slices"
	"testing"
)

// Red where few boundaries are taken for all that -every-kill asks for, and where that flag leaves some out.
func TestSpreadOverWhatCounts(t *testing.T) {
	of := func(writes ...string) (all []Boundary) {
		for _, write := range writes {
			all = append(all, Boundary{Write: write})
		}
		return all
	}
	counts := func(at Boundary) bool { return at.Write != "status" }
	for _, test := range []struct {
		every     bool
		all, want []Boundary
	}{
		{false, of("status", "gate"), of("gate")},
		{false, of("a", "status", "b", "c", "status", "d"), of("a", "d")},
		{true, of("status", "gate"), of("status", "gate")},
	} {
		was := *everyKill
		*everyKill = test.every
		if got := SpreadOver(test.all, 2, counts); !slices.Equal(got, test.want) {
			t.Errorf("with -every-kill %t, of %v it chose %v, want %v", test.every, test.all, got, test.want)
		}
		*everyKill = was
	}
}
