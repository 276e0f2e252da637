package addoninstallation

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
)

func TestBackOff(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	failure := &loop.Outcome{Kind: loop.RetryAt, Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonFailed}
	for attempt, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := loop.RequeueAfter(f.backOff(failure, time.Now())); got != want {
			t.Errorf("attempt %d comes back after %s, want %s", attempt+1, got, want)
		}
	}
	project(f, failure, time.Now())
	if got := f.installation.Status; got.Failures != 3 || got.NextAttempt == nil {
		t.Errorf("status tells %d failures, next attempt %v", got.Failures, got.NextAttempt)
	}
	project(f, f.backOff(&loop.Outcome{Kind: loop.Waiting, Condition: kubermaticv1.ConditionHealthy}, time.Now()), time.Now())
	if got := f.installation.Status; got.Failures != 0 || got.NextAttempt != nil {
		t.Errorf("waiting counts as a failure: %d, %v", got.Failures, got.NextAttempt)
	}
	f.backOff(failure, time.Now())
	if f.memory.failures != 1 {
		t.Errorf("after something else, a failure counts as number %d", f.memory.failures)
	}
}

// TestOverdueReconciliationsBackOff fails if a reconciliation that took too long is followed by the next one at once, because it
// ended in a checkpoint: the intervals of slow ones grow.
func TestOverdueReconciliationsBackOff(t *testing.T) {
	within, end := context.WithCancelCause(t.Context())
	end(&fairqueue.OverdueError{After: time.Second})
	for _, outcome := range []*loop.Outcome{
		checkpoint(kubermaticv1.ConditionApplied, "31 of 31 objects are about to be written"),
		{Kind: loop.Waiting, Condition: kubermaticv1.ConditionApplied, Recheck: time.Millisecond},
		{Kind: loop.RetryAt, Condition: kubermaticv1.ConditionApplied},
	} {
		f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{failures: 3})
		f.run.Connection = &cluster.Connection{}
		late := f.backOff(f.overdue(within, outcome), time.Now())
		if got := loop.RequeueAfter(late); got != 8*time.Second || late.Reason != kubermaticv1.ReasonClusterUnreachable {
			t.Errorf("%#v becomes %#v, and comes back after %s", outcome, late, got)
		}
	}
}

// TestLongRolloutsAreAnnounced fails if a long rollout begins before the status shows the edit, if it never begins when
// the status can't be written, or if a short one costs a reconciliation for it.
func TestLongRolloutsAreAnnounced(t *testing.T) {
	for _, test := range []struct {
		why      string
		left     int
		observed int64
		reported bool
	}{
		{"a new edit with many objects to write", quicklyApplied + 1, 1, true},
		{"one that the status shows already", quicklyApplied + 1, 2, false},
		{"a new edit with few of them", quicklyApplied, 1, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
			f.run.Objects = make([]*unstructured.Unstructured, 2*quicklyApplied)
			f.installation.Generation, f.installation.Status.ObservedGeneration = 2, test.observed
			outcome := announceRollout(f, test.left)
			if isSaved := outcome.Is(loop.Checkpoint); isSaved != test.reported || isSaved && outcome.Recheck != loop.AtOnce || !isSaved && outcome != nil {
				t.Errorf("got %v", outcome)
			}
			if outcome := announceRollout(f, test.left); outcome != nil {
				t.Errorf("got %v at the next pass", outcome)
			}
		})
	}
}
