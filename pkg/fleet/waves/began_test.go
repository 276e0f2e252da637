package waves

import (
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// TestARevisionBeginsAfterTheMovesOfTheOneBefore: red where a start is truncated to the current second, where two
// revisions start in one second, and where the time of a clock that was wrong once counts forever.
func TestARevisionBeginsAfterTheMovesOfTheOneBefore(t *testing.T) {
	for _, test := range []struct {
		why               string
		now, before, want time.Duration
	}{
		{"the first, on the second", 0, -time.Hour, 0},
		{"within a second: at its end", 600 * time.Millisecond, -time.Hour, time.Second},
		{"two in one second", 700 * time.Millisecond, time.Second, 2 * time.Second},
		{"three in one second", 800 * time.Millisecond, 2 * time.Second, 3 * time.Second},
		{"in the second that the one before waits for", 1200 * time.Millisecond, time.Second, 2 * time.Second},
		{"so many that they run ahead", 900 * time.Millisecond, 11 * time.Second, time.Second},
		{"one began by a clock that was wrong", 0, 24 * 365 * time.Hour, 0},
	} {
		if got := Began(noon.Add(test.now), noon.Add(test.before)); !got.Equal(noon.Add(test.want)) {
			t.Errorf("%s: it begins %s after noon, want %s", test.why, got.Sub(noon), test.want)
		}
	}
	if got := Began(noon, time.Time{}); !got.Equal(noon) {
		t.Errorf("the very first begins at %s", got)
	}
}

// TestAFixIsNotHaltedByWhatItMends: a revision moves a cluster and fails there, the fix begins in the same second,
// and its own move fails. The test fails where the first failure counts as the fix's, which halts it before its first
// write, and where its own does not count.
func TestAFixIsNotHaltedByWhatItMends(t *testing.T) {
	strategy, err := rollout.NewStrategy(&v1.Rollout{})
	if err != nil {
		t.Fatal(err)
	}
	first := Began(noon.Add(50*time.Millisecond), noon.Add(-time.Hour))
	fix := Began(noon.Add(900*time.Millisecond), first)
	stateOf := func(startedAt, at time.Time) v1.ClusterState {
		live := movedAt(0, "False", v1.ReasonRolledBack, time.Second)
		live.Annotations = installation.Move{At: at, StartedAt: startedAt}.Stamps(nil)
		return ClusterStatusOf(Facts{Presence: Present, Mine: reportsOf(live)}, Course{
			Strategy: strategy, StartedAt: fix, Now: noon.Add(3 * time.Second),
		}).State
	}
	if got := stateOf(first, noon.Add(100*time.Millisecond)); got == v1.ClusterFailed {
		t.Error("what failed before the fix counts as a failure of it")
	}
	if got := stateOf(fix, noon.Add(950*time.Millisecond)); got != v1.ClusterFailed {
		t.Errorf("the fix failed, and its cluster is %s", got)
	}
}
