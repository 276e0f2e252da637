package addoninstallation

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

func TestBackOff(t *testing.T) {
	f := passOver(&kubermaticv1.AddonInstallation{}, &memory{})
	failure := loop.RetryAt{Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonFailed}
	for attempt, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := loop.RequeueAfter(f.backOff(failure, time.Now())); got != want {
			t.Errorf("attempt %d comes back after %s, want %s", attempt+1, got, want)
		}
	}
	project(f, failure, time.Now())
	if got := f.installation.Status; got.Failures != 3 || got.NextAttempt == nil {
		t.Errorf("status tells %d failures, next attempt %v", got.Failures, got.NextAttempt)
	}
	project(f, f.backOff(loop.Waiting{Condition: kubermaticv1.ConditionHealthy}, time.Now()), time.Now())
	if got := f.installation.Status; got.Failures != 0 || got.NextAttempt != nil {
		t.Errorf("waiting counts as a failure: %d, %v", got.Failures, got.NextAttempt)
	}
	f.backOff(failure, time.Now())
	if f.memory.failures != 1 {
		t.Errorf("after something else, a failure counts as number %d", f.memory.failures)
	}
}

// Red when a pass that took too long is followed by the next one at once, since it ended in a checkpoint: what is slow is tried ever
// more rarely.
func TestOverduePassesBackOff(t *testing.T) {
	within, end := context.WithCancelCause(t.Context())
	end(&fairqueue.OverdueError{After: time.Second})
	for _, outcome := range []loop.Outcome{
		checkpoint(kubermaticv1.ConditionApplied, "31 of 31 objects are about to be written"),
		loop.Waiting{Condition: kubermaticv1.ConditionApplied, Recheck: time.Millisecond},
		loop.RetryAt{Condition: kubermaticv1.ConditionApplied},
	} {
		f := passOver(&kubermaticv1.AddonInstallation{}, &memory{failures: 3})
		f.pass.Connection = &cluster.Connection{}
		late := f.backOff(f.overdue(within, outcome), time.Now())
		if got := loop.RequeueAfter(late); got != 8*time.Second || verdictOf(late).reason != kubermaticv1.ReasonClusterUnreachable {
			t.Errorf("%#v becomes %#v, and comes back after %s", outcome, late, got)
		}
	}
}

// Red when a long rollout begins before the status shows anything of the edit, when it never begins where the status can't be
// written, or when a short one costs a pass for it.
func TestLongRolloutsAreAnnounced(t *testing.T) {
	for _, test := range []struct {
		why      string
		left     int
		observed int64
		told     bool
	}{
		{"a new edit with many objects to write", quicklyApplied + 1, 1, true},
		{"one that the status shows already", quicklyApplied + 1, 2, false},
		{"a new edit with few of them", quicklyApplied, 1, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			f := passOver(&kubermaticv1.AddonInstallation{}, &memory{})
			f.pass.Objects = make([]*unstructured.Unstructured, 2*quicklyApplied)
			f.installation.Generation, f.installation.Status.ObservedGeneration = 2, test.observed
			outcome := announceRollout(f, test.left)
			if saved, isSaved := outcome.(loop.Checkpoint); isSaved != test.told || saved.AtOnce != test.told || !isSaved && outcome != nil {
				t.Errorf("got %v", outcome)
			}
			if outcome := announceRollout(f, test.left); outcome != nil {
				t.Errorf("got %v at the next pass", outcome)
			}
		})
	}
}
