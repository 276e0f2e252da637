package addoninstallation

import (
	"context"
	"errors"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// connectRecheck is how often a missing connection is asked for, besides being woken.
const connectRecheck = 30 * time.Second

// connect takes the connection that stands; it never makes one. The connections wake the installation.
func (r *Reconciler) connect(_ context.Context, f *facts) loop.Outcome {
	connection, err := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	var without *cluster.NotConnectedError
	if err != nil {
		f.memory.watched = time.Time{}
	}
	if errors.As(err, &without) {
		return notConnected(without)
	}
	if err != nil {
		return failed(err)
	}
	f.connection = connection
	if f.memory.watched.IsZero() {
		f.memory.watched = f.now
	}
	return nil
}

func notConnected(without *cluster.NotConnectedError) loop.Outcome {
	return loop.RetryAt{
		Condition: kubermaticv1.ConditionReady, Reason: without.Reason, Message: without.Error(),
		Unknown: without.Reason == kubermaticv1.ReasonClusterUnreachable, After: connectRecheck,
	}
}

// remoteFailed is a call to the user cluster that failed. The connection learns of it; whether the cluster is
// unreachable shows at the next pass.
func (r *Reconciler) remoteFailed(f *facts, condition string, err error) loop.Outcome {
	r.Connections.Report(f.cluster, err)
	if !isAnswer(err) {
		f.memory.watched = time.Time{}
	}
	return loop.RetryAt{Condition: condition, Reason: kubermaticv1.ReasonFailed, Message: err.Error()}
}
