package gitcatalogue

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace. Default: kubermatic.
	Namespace string
	// Clock is for annotation reconcile-at, and for the pace of writes. Default: the real one.
	Clock clock.PassiveClock
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Master is the client of the master that the controllers of catalogues share.
	Master cluster.Cluster
	// Store has the content of repositories.
	Store fetch.Store
	// SourceKinds are those that the store serves; git is among them.
	SourceKinds fetch.Kinds
	Recorder    events.EventRecorder
	Options     Options
}

// Reconciler reads catalogues in git.
type Reconciler struct {
	options  Options
	master   cluster.Cluster
	cached   client.Client
	direct   client.Reader
	store    fetch.Store
	kinds    fetch.Kinds
	recorder events.EventRecorder
	memories memories
	scale    catalogue.Scale
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := dependencies.Options
	options.Namespace = cmp.Or(options.Namespace, "kubermatic")
	options.Clock = cmp.Or[clock.PassiveClock](options.Clock, clock.RealClock{})
	return &Reconciler{
		options: options, master: dependencies.Master, store: dependencies.Store,
		kinds: dependencies.SourceKinds, recorder: dependencies.Recorder,
		cached: dependencies.Master.GetClient(), direct: dependencies.Master.GetAPIReader(),
		memories: memories{kept: map[types.NamespacedName]*memory{}, waiting: map[string][]types.NamespacedName{}},
	}
}

// Reconcile makes the generated catalogues of one catalogue equal to its repository.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1.AddonCatalogue{}
	if err := r.cached.Get(ctx, request.NamespacedName, object); err != nil {
		r.memories.forget(request.NamespacedName)
		r.memories.await(request.NamespacedName, nil)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.isOurs(object) {
		return loop.Result(&loop.Outcome{Kind: loop.NotMine}), nil
	}
	turn := loop.StartShared(r.cached, object)
	facts := &facts{object: object, memory: r.memories.of(request.NamespacedName)}
	steps := r.steps()
	if object.Spec.Git == nil {
		steps = r.leavingSteps()
	}
	outcome := loop.Run(ctx, steps, facts)
	before := object.Status.Revision
	project(facts, outcome)
	result, err := turn.Finish(ctx, outcome)
	if err == nil {
		r.announce(facts, before)
	}
	return result, err
}

// isOurs ignores generated and deleted catalogues, and those of other namespaces.
func (r *Reconciler) isOurs(object *v1.AddonCatalogue) bool {
	return object.Namespace == r.options.Namespace && object.Labels[v1.LabelRole] == "" && object.DeletionTimestamp == nil
}
