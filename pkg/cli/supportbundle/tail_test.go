package supportbundle

import (
	"strings"
	"testing"
)

// Red when the end of a log is not what is kept, a line is cut, or more than the limit is read.
func TestTailKeepsTheEnd(t *testing.T) {
	text := strings.Repeat("0123456\n", 40_000)
	for _, test := range []struct {
		why        string
		kept, read int
		want       string
	}{
		{"all of a short log", 1 << 20, 1 << 20, text},
		{"whole lines of a long one", 20, 1 << 20, "0123456\n0123456\n"},
		{"no more than the limit", 20, 100, "0123456\n0123"},
	} {
		if got, err := tail(strings.NewReader(text), test.kept, test.read); err != nil || string(got) != test.want {
			t.Errorf("%s: %d bytes %.40q, %v", test.why, len(got), got, err)
		}
	}
}
