package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
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

// connect uses the connection that there is; it never makes one. The connections wake the
// installation.
func (r *Reconciler) connect(ctx context.Context, f *facts) loop.Outcome {
	connection, err := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	var without *cluster.NotConnectedError
	if err != nil {
		f.pass.Lost()
	}
	if errors.As(err, &without) {
		f.connecting = without.Connecting
		return outcomeOf(notConnected(without))
	}
	if err != nil {
		return failed(err)
	}
	if connection.Origin != f.pass.Owner.ClusterUID { // another Cluster of the name, over another user cluster, as is known only now
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q has another user cluster than before", f.cluster.Name))
	}
	if record := f.pass.Record(); record != nil && record.ClusterUID != f.cluster.UID {
		if stop := f.pass.Reown(ctx); stop != nil {
			return outcomeOf(stop)
		}
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q came back over the same user cluster", f.cluster.Name))
	}
	f.pass.Connect(connection)
	return nil
}

// watchSwaps wakes the installations of a cluster that turns out to be another one, so that they
// say so.
func (r *Reconciler) watchSwaps(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Connections.OnSwap(func(swapped target.Ref) {
		for _, request := range r.requestsOf(ctx, swapped) {
			queue.Add(request)
		}
	})
	return nil
}

// notConnected says why. What only people can mend is waited for: the connection wakes the
// installation.
func notConnected(without *cluster.NotConnectedError) *installer.Stop {
	stop := &installer.Stop{
		Kind: installer.Retry, About: installer.AboutAll, Reason: without.Reason, Message: without.Error(), Recheck: connectRecheck,
	}
	switch without.Reason {
	case kubermaticv1.ReasonClusterSwapped, kubermaticv1.ReasonClusterShared:
		stop.Kind, stop.Recheck = installer.Waiting, clusterRecheck
	case kubermaticv1.ReasonClusterUnreachable, kubermaticv1.ReasonClusterMisbehaves:
		stop.Kind = installer.RetryUnknown
	}
	return stop
}

// callFailed is a call to the user cluster that failed. The connection learns of it. Where that
// ends the connection, the cluster is what is reported, in the words of the next pass, and nothing
// of the add-on.
func (r *Reconciler) callFailed(f *facts, about installer.About, err error) *installer.Stop {
	r.Connections.Report(f.cluster.Ref, err)
	if calls.IsAnswer(err) {
		return stopOf(about, err)
	}
	f.pass.Lost()
	_, problem := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	if without, ok := errors.AsType[*cluster.NotConnectedError](problem); ok {
		return notConnected(without)
	}
	return stopOf(about, err)
}

// stopOf is what a call that failed says of what it is about. Where the API server misbehaves,
// nothing is known.
func stopOf(about installer.About, err error) *installer.Stop {
	stop := &installer.Stop{
		Kind: installer.Retry, About: about, Reason: kubermaticv1.ReasonFailed, Message: err.Error(), Cause: calls.CauseOf(err),
	}
	if _, ok := errors.AsType[*calls.MisbehavesError](err); ok {
		stop.Kind, stop.About, stop.Reason = installer.RetryUnknown, installer.AboutAll, kubermaticv1.ReasonClusterMisbehaves
	}
	return stop
}

// requiredRecheck is how often kinds that a version needs are asked for; what brings them may be on
// its way.
const requiredRecheck = 15 * time.Second

// required waits until the user cluster serves what the version needs. Nothing of the version is
// rendered or applied before.
func (r *Reconciler) required(_ context.Context, f *facts) loop.Outcome {
	if f.pass.Decision.IsApplied() || f.pass.Decision.IsBegun() {
		return nil
	}
	var missing []string
	for _, need := range f.choice.Version.Template.RequiredResourceTypes {
		kind := schema.GroupVersionKind{Group: need.Group, Version: need.Version, Kind: need.Kind}
		_, err := f.pass.Connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing = append(missing, kind.GroupVersion().String()+" "+kind.Kind)
		default:
			return outcomeOf(r.callFailed(f, installer.AboutApply, err))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	f.pass.Connection.Mapper.Reset() // the next pass asks again
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonKindNotServed, Recheck: requiredRecheck,
		Message: fmt.Sprintf("the user cluster does not serve %s, which this version needs: install what brings it",
			strings.Join(missing, ", ")),
	}
}
