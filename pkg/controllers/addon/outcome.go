package addon

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func waiting(reason, message string, recheck time.Duration) *loop.Outcome {
	return loop.Wait(v1.ConditionReady, reason, message, recheck)
}

// retry is the outcome of a failed call; loop.Failures sets the delay.
func retry(err error) *loop.Outcome {
	return &loop.Outcome{Kind: loop.RetryAt, Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error()}
}

// logOutcome logs why a cluster waits: there may be no catalogue yet for a condition.
func logOutcome(ctx context.Context, outcome *loop.Outcome) {
	switch {
	case outcome.Is(loop.RetryAt):
		log.FromContext(ctx).Info("a call failed; trying again", "problem", outcome.Message, "after", outcome.Recheck.String())
	case outcome.Is(loop.Waiting) && outcome.Reason == v1.ReasonClusterUnknown:
		log.FromContext(ctx).Info("the namespace is offered nothing, since it does not belong to exactly one Cluster", "problem", outcome.Message)
	case outcome.Is(loop.Waiting):
		log.FromContext(ctx).V(1).Info("the available catalogue is not written yet", "problem", outcome.Message)
	}
}
