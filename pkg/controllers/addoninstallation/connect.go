package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installer"
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
		f.memory.Watched = time.Time{}
	}
	if errors.As(err, &without) {
		return outcomeOf(notConnected(without))
	}
	if err != nil {
		return failed(err)
	}
	if connection.Origin != f.Owner.ClusterUID { // another Cluster of the name, over another user cluster, as is known only now
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q has another user cluster than before", f.cluster.Name))
	}
	if record := f.Record(); record != nil && record.ClusterUID != f.cluster.UID {
		return r.comeBack(ctx, f)
	}
	f.Connect(connection)
	return nil
}

// comeBack makes a Cluster that came back with another UID the owner of the records, once its user cluster is known to be the same.
func (r *Reconciler) comeBack(ctx context.Context, f *facts) loop.Outcome {
	if err := f.Reown(ctx); err != nil {
		return failed(err)
	}
	return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q came back over the same user cluster", f.cluster.Name))
}

// watchSwaps wakes the installations of a cluster that turns out to be another one, so that they say so.
func (r *Reconciler) watchSwaps(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Connections.OnSwap(func(swapped target.Ref) {
		for _, request := range r.requests(ctx, client.InNamespace(swapped.Namespace)) {
			queue.Add(request)
		}
	})
	return nil
}

// notConnected says why. What only people can mend is waited for: the connection wakes the installation.
func notConnected(without *cluster.NotConnectedError) *installer.Stop {
	stop := &installer.Stop{About: installer.AboutAll, Reason: without.Reason, Message: without.Error(), Recheck: clusterRecheck}
	switch without.Reason {
	case kubermaticv1.ReasonClusterSwapped, kubermaticv1.ReasonClusterShared:
		return stop
	case kubermaticv1.ReasonClusterUnreachable, kubermaticv1.ReasonClusterMisbehaves:
		stop.Unknown = true
	}
	stop.Retry, stop.Recheck = true, connectRecheck
	return stop
}

// callFailed is a call to the user cluster that failed. The connection learns of it. Where that takes it out, the cluster is what there
// is to tell of, in the words of the next pass, and nothing of the add-on.
func (r *Reconciler) callFailed(f *facts, about installer.About, err error) *installer.Stop {
	r.Connections.Report(f.cluster.Ref, err)
	if calls.IsAnswer(err) {
		return stopOf(about, err)
	}
	f.memory.Watched = time.Time{}
	_, problem := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	if without, ok := errors.AsType[*cluster.NotConnectedError](problem); ok {
		return notConnected(without)
	}
	return stopOf(about, err)
}

// stopOf is what a call that failed says of what it is about. Where the API server misbehaves, nothing is known.
func stopOf(about installer.About, err error) *installer.Stop {
	stop := &installer.Stop{About: about, Reason: kubermaticv1.ReasonFailed, Message: err.Error(), Retry: true}
	if _, ok := errors.AsType[*calls.MisbehavesError](err); ok {
		stop.About, stop.Reason, stop.Unknown = installer.AboutAll, kubermaticv1.ReasonClusterMisbehaves, true
	}
	return stop
}
