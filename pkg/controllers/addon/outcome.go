package addon

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

func waiting(reason, message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: v1.ConditionReady, Reason: reason, Message: message, Recheck: recheck}
}

// retry is a call that failed; loop.Failures sets the wait.
func retry(err error) loop.Outcome {
	return loop.RetryAt{Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error()}
}

// logOutcome logs what a cluster waits for: there may be no catalogue yet for a condition.
func logOutcome(ctx context.Context, outcome loop.Outcome) {
	switch o := outcome.(type) {
	case loop.RetryAt:
		log.FromContext(ctx).Info("a call failed and is tried again", "problem", o.Message, "after", o.After.String())
	case loop.Waiting:
		if o.Reason == v1.ReasonClusterUnknown {
			log.FromContext(ctx).Info("nothing is offered to a namespace that is not one Cluster's", "problem", o.Message)
			return
		}
		log.FromContext(ctx).V(1).Info("a cluster waits", "problem", o.Message)
	}
}
