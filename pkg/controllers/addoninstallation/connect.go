package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// connectRecheck is how often a missing connection is asked for, besides being woken.
const connectRecheck = 30 * time.Second

// connect takes the connection that stands; it never makes one. The connections wake the installation.
func (r *Reconciler) connect(ctx context.Context, f *facts) loop.Outcome {
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
	if connection.Origin != f.owner.ClusterUID { // another Cluster of the name, over another user cluster, as is known only now
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q has another user cluster than before", f.cluster.Name))
	}
	if record := f.record(); record != nil && record.ClusterUID != f.cluster.UID {
		return r.comeBack(ctx, f)
	}
	f.connection = connection
	f.memory.reach(connection.UserCluster)
	if f.memory.watched.IsZero() {
		f.memory.watched = f.now
	}
	return nil
}

// comeBack makes a Cluster that came back with another UID the owner of the records, once its user cluster is known to be the same.
func (r *Reconciler) comeBack(ctx context.Context, f *facts) loop.Outcome {
	if err := r.Records.Reown(ctx, f.installation.Namespace, f.owner, f.cluster.Identity()); err != nil {
		return failed(err)
	}
	f.memory.doubt()
	return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q came back over the same user cluster", f.cluster.Name))
}

// watchSwaps wakes the installations of a cluster that turns out to be another one, so that they say so.
func (r *Reconciler) watchSwaps(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Connections.OnSwap(func(swapped target.Ref) {
		for _, request := range r.requests(ctx, cluster.InstallationsOf(swapped)) {
			queue.Add(request)
		}
	})
	return nil
}

// notConnected says why. What only people can mend is waited for: the connection wakes the installation.
func notConnected(without *cluster.NotConnectedError) loop.Outcome {
	if without.Reason == kubermaticv1.ReasonClusterSwapped || without.Reason == kubermaticv1.ReasonClusterShared {
		return waiting(without.Reason, without.Error(), clusterRecheck)
	}
	unknown := without.Reason == kubermaticv1.ReasonClusterUnreachable || without.Reason == kubermaticv1.ReasonClusterMisbehaves
	return loop.RetryAt{
		Condition: kubermaticv1.ConditionReady, Reason: without.Reason, Message: without.Error(), Unknown: unknown,
		After: connectRecheck,
	}
}

// remoteFailed is a call to the user cluster that failed. The connection learns of it. Where that takes it out, the cluster is what there
// is to tell of, in the words of the next pass, and nothing of the add-on.
func (r *Reconciler) remoteFailed(f *facts, condition string, err error) loop.Outcome {
	r.Connections.Report(f.cluster.Ref, err)
	if isAnswer(err) {
		return callFailed(condition, err)
	}
	f.memory.watched = time.Time{}
	_, problem := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	if without, ok := errors.AsType[*cluster.NotConnectedError](problem); ok {
		return notConnected(without)
	}
	return callFailed(condition, err)
}

// callFailed is what a call that failed makes of a condition. Where the API server misbehaves, nothing is known.
func callFailed(condition string, err error) loop.Outcome {
	if _, ok := errors.AsType[*calls.MisbehavesError](err); ok {
		return loop.RetryAt{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonClusterMisbehaves, Message: err.Error(), Unknown: true,
		}
	}
	return loop.RetryAt{Condition: condition, Reason: kubermaticv1.ReasonFailed, Message: err.Error()}
}
