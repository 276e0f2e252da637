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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
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
	if stop := f.Reown(ctx); stop != nil {
		return outcomeOf(stop)
	}
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
	stop := &installer.Stop{Kind: installer.Retry, About: about, Reason: kubermaticv1.ReasonFailed, Message: err.Error()}
	if _, ok := errors.AsType[*calls.MisbehavesError](err); ok {
		stop.Kind, stop.About, stop.Reason = installer.RetryUnknown, installer.AboutAll, kubermaticv1.ReasonClusterMisbehaves
	}
	return stop
}

// requiredRecheck is how often kinds that a version needs are looked for; what brings them may be on its way.
const requiredRecheck = 15 * time.Second

// required waits until the user cluster serves what the version needs. Nothing of the version is rendered or applied before.
func (r *Reconciler) required(_ context.Context, f *facts) loop.Outcome {
	if f.Decision.IsApplied() || f.Decision.Do == revision.GoBack {
		return nil
	}
	var missing []string
	for _, need := range f.choice.Version.Template.RequiredResourceTypes {
		kind := schema.GroupVersionKind{Group: need.Group, Version: need.Version, Kind: need.Kind}
		_, err := f.Connection.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
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
	f.Connection.Mapper.Reset() // the next look asks again
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonKindNotServed, Recheck: requiredRecheck,
		Message: fmt.Sprintf("the user cluster does not serve %s, which this version needs: install what brings it",
			strings.Join(missing, ", ")),
	}
}

// firstAwait is the wait before what is in the way is looked at again; it doubles up to installer.SlowestRecheck.
const firstAwait = time.Second

// awaited is what an installation waits for that somebody has to do in the user cluster.
type awaited struct {
	obstacle apply.Obstacle
	// seen is how it was when it was in the way.
	seen string
	// looks counts those that found it in the way.
	looks int32
	// until is when everything is tried again, whatever is seen.
	until time.Time
}

// next is how long to wait before the next look.
func (a *awaited) next() time.Duration {
	return max(min(backoff.After(a.looks, firstAwait, installer.SlowestRecheck), time.Until(a.until)), atOnce)
}

// await has what is in the way of the installation looked at soon, by one call a look: it is tried again once that changed, and not
// before the outcome says otherwise. Status and seed are left alone by such looks.
func (r *Reconciler) await(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	before := f.memory.awaited
	f.memory.awaited = nil
	waiting, ok := outcome.(loop.Waiting)
	if !ok || f.Obstacle == nil || waiting.Condition != kubermaticv1.ConditionApplied || waiting.Recheck == 0 {
		return outcome
	}
	seen, err := f.ObstacleState(ctx, *f.Obstacle)
	if err != nil {
		return outcome
	}
	now := &awaited{obstacle: *f.Obstacle, seen: seen, looks: 1, until: time.Now().Add(waiting.Recheck)}
	if before != nil && before.obstacle == now.obstacle {
		now.looks = before.looks + 1
	}
	f.memory.awaited = now
	waiting.Recheck = now.next()
	return waiting
}

// isInTheWay says, where a pass comes for its time alone, whether what is waited for is as it was; the rest of the pass is
// spared then.
func (r *Reconciler) isInTheWay(ctx context.Context, request ctrl.Request, f *facts) bool {
	known := f.memory.awaited
	if known == nil || !r.queue.IsDue(request) || !time.Now().Before(known.until) {
		return false
	}
	if r.locate(ctx, f) != nil || f.memory.awaited != known || r.connect(ctx, f) != nil {
		return false
	}
	seen, err := f.ObstacleState(ctx, known.obstacle)
	if err != nil || seen == "" || seen != known.seen {
		return false
	}
	known.looks++
	return true
}
