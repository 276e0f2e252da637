package times_test

import (
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/times"
)

// Red when a time of a clock that was ahead is believed, and when one is not that another process stored just now.
func TestTimesOfAClockThatWasAheadAreNow(t *testing.T) {
	now := time.Unix(1800000000, 0)
	for _, test := range []struct {
		stored, want time.Duration
	}{{-time.Hour, -time.Hour}, {0, 0}, {times.Skew, times.Skew}, {times.Skew + 1, 0}, {1000000 * time.Hour, 0}} {
		stored := now.Add(test.stored)
		if got := times.Past(stored, now).Sub(now); got != test.want {
			t.Errorf("stored %s from now: taken for %s, want %s", test.stored, got, test.want)
		}
	}
	if got := times.Past(time.Time{}, now); !got.IsZero() {
		t.Errorf("no time is taken for %s", got)
	}
}
