package addon

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// slowestRetry is the longest wait between two attempts of what keeps failing.
const slowestRetry = 5 * time.Minute

func waiting(reason, message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: v1.ConditionReady, Reason: reason, Message: message, Recheck: recheck}
}

// retry is a call that failed; backOff says when the next one comes.
func retry(err error) loop.Outcome {
	return loop.RetryAt{Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error()}
}

// tell logs what a cluster waits for: there may be no catalogue yet whose condition could say it.
func tell(ctx context.Context, outcome loop.Outcome) {
	switch o := outcome.(type) {
	case loop.RetryAt:
		log.FromContext(ctx).Info("a call failed and is tried again", "problem", o.Message, "after", o.After)
	case loop.Waiting:
		if o.Reason == v1.ReasonClusterUnknown {
			log.FromContext(ctx).Info("nothing is offered to a namespace that is not one Cluster's", "problem", o.Message)
			return
		}
		log.FromContext(ctx).V(1).Info("a cluster waits", "for", o.Message)
	}
}

// tries counts failures in a row, by namespace.
type tries struct {
	mutex  sync.Mutex
	failed map[string]int32
}

// backOff gives a failure the wait that its number in a row earns.
func (t *tries) backOff(namespace string, outcome loop.Outcome) loop.Outcome {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	failure, failed := outcome.(loop.RetryAt)
	if !failed {
		delete(t.failed, namespace)
		return outcome
	}
	if t.failed == nil {
		t.failed = map[string]int32{}
	}
	t.failed[namespace]++
	failure.After = backoff.After(t.failed[namespace], time.Second, slowestRetry)
	return failure
}
