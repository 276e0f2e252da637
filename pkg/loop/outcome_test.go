package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/loop"
)

func TestRunEndsAtTheFirstOutcome(t *testing.T) {
	var trail []string
	step := func(name string, outcome loop.Outcome) loop.Step[[]string] {
		return loop.Step[[]string]{Name: name, Run: func(_ context.Context, facts *[]string) loop.Outcome {
			*facts = append(*facts, name)
			return outcome
		}}
	}
	waiting := loop.Waiting{Condition: "Applied", Reason: "WaitingForStage", Recheck: time.Second}
	steps := []loop.Step[[]string]{step("first", nil), step("second", waiting), step("third", nil)}

	outcome := loop.Run(t.Context(), steps, &trail)

	if diff := cmp.Diff(loop.Outcome(waiting), outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "second"}, trail); diff != "" {
		t.Errorf("steps taken (-want +got):\n%s", diff)
	}
}

func TestRunPastTheLastStepIsDone(t *testing.T) {
	facts := 0
	steps := []loop.Step[int]{{Name: "only", Run: func(context.Context, *int) loop.Outcome { return nil }}}
	if outcome := loop.Run(t.Context(), steps, &facts); outcome != (loop.Done{}) {
		t.Errorf("outcome %v, want Done", outcome)
	}
}

func TestComeBack(t *testing.T) {
	for _, test := range []struct {
		why     string
		outcome loop.Outcome
		want    time.Duration
	}{
		{"done for good", loop.Done{}, 0},
		{"done, with a look later", loop.Done{Recheck: time.Minute}, time.Minute},
		{"a retry without a wait of its own is never forgotten", loop.RetryAt{}, time.Second},
		{"a retry with its own wait", loop.RetryAt{After: time.Hour}, time.Hour},
		{"waiting for an event only", loop.Waiting{}, 0},
		{"stalled until an edit", loop.Stalled{}, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := loop.ComeBack(test.outcome); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
