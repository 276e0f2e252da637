package long

import (
	"slices"
	"testing"
)

func TestRotationIsEightDigits(t *testing.T) {
	for _, test := range []struct {
		text  string
		want  uint32
		holds bool
	}{
		{"", 0, true}, {"00000003", 3, true}, {"ffffffff", 1<<32 - 1, true},
		{"3", 0, false}, {"0000000g", 0, false}, {"9c051895c", 0, false}, {"-0000001", 0, false},
	} {
		if got, err := rotation(test.text); got != test.want || test.holds != (err == nil) {
			t.Errorf("%q: %d, %v", test.text, got, err)
		}
	}
}

// Red when a case has no turn, or when a turn has none.
func TestEachCaseHasATurn(t *testing.T) {
	for length := 1; length < 12; length++ {
		all := make([]int, length)
		for i := range all {
			all[i] = i
		}
		var had []int
		for turn := range uint32(length) { // as many turns as there are groups at most
			chosen := neighbours(all, 3, turn)
			if len(chosen) == 0 || len(chosen) > 3 {
				t.Fatalf("turn %d of %d cases has %d", turn, length, len(chosen))
			}
			had = append(had, chosen...)
		}
		slices.Sort(had)
		if !slices.Equal(slices.Compact(had), all) {
			t.Errorf("of %d cases, these have a turn: %v", length, had)
		}
	}
}
