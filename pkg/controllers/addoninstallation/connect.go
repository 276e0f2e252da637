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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// connectRecheck is the interval at which a missing connection is asked for, in addition to wake-ups.
const connectRecheck = 30 * time.Second

// connect uses an existing connection; it never creates one. The connections wake the installation.
func (r *Reconciler) connect(ctx context.Context, f *facts) *loop.Outcome {
	connection, err := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	var without *cluster.NotConnectedError
	if err != nil {
		f.run.Lost()
	}
	if errors.As(err, &without) {
		f.connecting = without.Connecting
		return notConnected(without)
	}
	if err != nil {
		return failed(err)
	}
	if connection.Origin != f.run.Owner.ClusterUID { // a recreated Cluster with another user cluster, which only the connection shows
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q belongs to a different user cluster than before", f.cluster.Name))
	}
	if record := f.run.Record(); record != nil && record.ClusterUID != f.cluster.UID {
		if outcome := f.run.Reown(ctx); outcome != nil {
			return outcome
		}
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("cluster %q was recreated with the same user cluster", f.cluster.Name))
	}
	f.run.Connect(connection)
	return nil
}

// watchSwaps wakes the installations of a cluster whose identity turns out to differ, so that they report it.
func (r *Reconciler) watchSwaps(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Connections.OnSwap(func(swapped target.Ref) {
		for _, request := range r.requestsOf(ctx, swapped) {
			queue.Add(request)
		}
	})
	return nil
}

// notConnected says why there is no connection. For causes that only people can fix it sets no recheck: the connection
// wakes the installation.
func notConnected(without *cluster.NotConnectedError) *loop.Outcome {
	outcome := &loop.Outcome{
		Kind: loop.RetryAt, Condition: kubermaticv1.ConditionReady, Reason: without.Reason, Message: without.Error(), Recheck: connectRecheck,
	}
	switch without.Reason {
	case kubermaticv1.ReasonClusterSwapped, kubermaticv1.ReasonClusterShared:
		outcome.Kind, outcome.Recheck = loop.Waiting, clusterRecheck
	case kubermaticv1.ReasonClusterUnreachable, kubermaticv1.ReasonClusterMisbehaves:
		outcome.Unknown = true
	}
	return outcome
}

// callFailed handles a failed call to the user cluster. It reports the failure to the connection. If that ends the
// connection, the outcome is about the cluster, with the message that the next reconciliation has, and not about the
// add-on.
func (r *Reconciler) callFailed(f *facts, condition string, err error) *loop.Outcome {
	r.Connections.Report(f.cluster.Ref, err)
	if calls.IsAnswer(err) {
		return callOutcome(condition, err)
	}
	f.run.Lost()
	_, problem := r.Connections.Get(f.cluster, f.installation.Name, r.waker(f.installation))
	if without, ok := errors.AsType[*cluster.NotConnectedError](problem); ok {
		return notConnected(without)
	}
	return callOutcome(condition, err)
}

// callOutcome is the outcome of a failed call, for a condition. If the API server misbehaves, the condition is Unknown.
func callOutcome(condition string, err error) *loop.Outcome {
	outcome := &loop.Outcome{
		Kind: loop.RetryAt, Condition: condition, Reason: kubermaticv1.ReasonFailed, Message: err.Error(), Cause: calls.CauseOf(err),
	}
	if _, ok := errors.AsType[*calls.MisbehavesError](err); ok {
		outcome.Unknown, outcome.Condition, outcome.Reason = true, kubermaticv1.ConditionReady, kubermaticv1.ReasonClusterMisbehaves
	}
	return outcome
}

// requiredRecheck is the interval at which required kinds are looked up; their installation may be under way.
const requiredRecheck = 15 * time.Second

// required waits until the user cluster serves the kinds that the version requires. The version is neither rendered nor
// applied before.
func (r *Reconciler) required(_ context.Context, f *facts) *loop.Outcome {
	if f.run.Decision.IsApplied() || f.run.Decision.IsBegun() {
		return nil
	}
	var missing []string
	for _, need := range f.choice.Version.Template.RequiredResourceTypes {
		kind := schema.GroupVersionKind{Group: need.Group, Version: need.Version, Kind: need.Kind}
		_, err := f.run.Connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			missing = append(missing, kind.GroupVersion().String()+" "+kind.Kind)
		default:
			return r.callFailed(f, kubermaticv1.ConditionApplied, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	f.run.Connection.Mapper.Reset() // the next reconciliation asks again
	return loop.Wait(kubermaticv1.ConditionApplied, kubermaticv1.ReasonKindNotServed, fmt.Sprintf(
		"the user cluster does not serve %s, which this version needs: install its CRD or API server",
		strings.Join(missing, ", ")), requiredRecheck)
}
