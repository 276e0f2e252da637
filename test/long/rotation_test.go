package long

import "testing"

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
