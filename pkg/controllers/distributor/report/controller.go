package report

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// Reporter writes the status of each catalogue.
type Reporter struct {
	ledger
	client   client.Client
	recorder events.EventRecorder
	usage    *usage.Ledger
	checkers *seed.Checkers
	// reported has, by name, the last report why a catalogue is not ready: conditions.Reported.
	reported sync.Map
}

// New returns a Reporter.
func New(client client.Client, recorder events.EventRecorder, usage *usage.Ledger, checkers *seed.Checkers) *Reporter {
	return &Reporter{client: client, recorder: recorder, usage: usage, checkers: checkers}
}

// SetupWithManager registers controller distributor-status.
func (r *Reporter) SetupWithManager(mgr ctrl.Manager, from cache.Cache) error {
	return loop.Register(mgr, "distributor-status", controller.Options{Reconciler: r, MaxConcurrentReconciles: 2},
		// Edits of status are replaced; edits of the spec go to the ledger first.
		source.Kind[client.Object](from, &v1.AddonCatalogue{}, &handler.EnqueueRequestForObject{}),
		source.Func(r.attach))
}

// Reconcile writes the status of one catalogue, once the distributor has read its present generation.
func (r *Reporter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1.AddonCatalogue{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		r.reported.Delete(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	facts, known := r.facts(object)
	if !known {
		return ctrl.Result{}, nil
	}
	facts.leaving = r.usage.Having(facts.Leave)
	if facts.checkers, facts.asked = r.checkers.Names(); len(facts.checkers) == 0 {
		facts.awaited = r.checkers.Awaited()
	}
	if len(facts.Conflicts) > 0 {
		facts.wonInGit = r.inGit(ctx, object.Namespace, facts.Conflicts[0].WonBy)
	}
	conflicts, leaving, trouble := object.Status.Conflicts, leavingReason(object), r.reportedOf(object)
	run := loop.StartShared(r.client, object)
	object.Status = statusOf(object, &facts)
	result, err := run.Finish(ctx, &loop.Outcome{Kind: loop.Done})
	if err == nil && result.IsZero() {
		r.announceConflicts(ctx, object, conflicts)
		r.announceLeaving(object, leaving)
		r.announceTrouble(ctx, object, trouble)
		return loop.Result(&loop.Outcome{Kind: loop.Done, Recheck: facts.awaited}), nil
	}
	return result, err
}

// inGit is the catalogue in git that a catalogue was generated from; empty if there is none.
func (r *Reporter) inGit(ctx context.Context, namespace, name string) string {
	found, key := &v1.AddonCatalogue{}, client.ObjectKey{Namespace: namespace, Name: name}
	if err := r.client.Get(ctx, key, found, client.UnsafeDisableDeepCopy); err != nil {
		return "" // it was deleted, and the next reconciliation has that
	}
	if owner := metav1.GetControllerOfNoCopy(found); owner != nil && found.Labels[v1.LabelRole] == v1.RoleGenerated {
		return owner.Name
	}
	return ""
}
