package backoff_test

import (
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
)

// Three writes go at once, then one per interval; a quiet time gives three again, and no more.
func TestWrites(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	writes := backoff.NewWrites(2 * time.Second)
	expect := func(want time.Duration) {
		t.Helper()
		if got := writes.Wait(now); got != want {
			t.Errorf("wait %s, want %s", got, want)
		}
	}
	for range 2 {
		for range 3 {
			expect(0)
		}
		expect(2 * time.Second)
		expect(2 * time.Second) // to ask costs nothing
		now = now.Add(2 * time.Second)
		expect(0)
		expect(2 * time.Second)
		now = now.Add(time.Hour)
	}
}
