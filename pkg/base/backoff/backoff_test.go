package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
)

func TestAfter(t *testing.T) {
	for tries, want := range map[int32]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 30: 5 * time.Minute, math.MaxInt32: 5 * time.Minute,
	} {
		if got := backoff.After(tries, time.Second, 5*time.Minute); got != want {
			t.Errorf("after %d tries: %s, want %s", tries, got, want)
		}
	}
	if got := backoff.After(1, time.Hour, time.Minute); got != time.Minute {
		t.Errorf("a first wait above the longest is %s", got)
	}
}

func TestSlowly(t *testing.T) {
	for tries, want := range map[int]time.Duration{
		0: 200 * time.Millisecond, 1: 200 * time.Millisecond, 2: 300 * time.Millisecond, 3: 450 * time.Millisecond, 9: 5 * time.Second,
	} {
		if got := backoff.Slowly(tries, 200*time.Millisecond, 5*time.Second); got != want {
			t.Errorf("after %d tries: %s, want %s", tries, got, want)
		}
	}
}

// Red when a time lies outside of its share, or when all of them lie on one side.
func TestAround(t *testing.T) {
	early, late := 0, 0
	for range 1000 {
		got := backoff.Around(10*time.Second, 0.1)
		if got < 9*time.Second || got > 11*time.Second {
			t.Fatalf("got %s", got)
		}
		if got < 10*time.Second {
			early++
		} else {
			late++
		}
	}
	if early < 300 || late < 300 {
		t.Errorf("%d of 1000 are early, %d late", early, late)
	}
}
