package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace holds the merged catalogues.
	CatalogueNamespace string
	// DriftInterval is the time between two comparisons of an installation's objects with the
	// record.
	DriftInterval time.Duration
	// AllowPrereleases lets pre-releases of the platform match ordinary ranges.
	AllowPrereleases bool
	// OrderTimeout limits the wait for slots, and for dependencies of an applied installation; 0: no wait.
	OrderTimeout time.Duration
	// GoingTime limits removals from a cluster that is being deleted, counted from its deletion; 0: goingTime.
	GoingTime time.Duration
	// WorkerName restricts the controller to Clusters with that label; empty: those without it.
	WorkerName string
	// Passes limit concurrent reconciliations, for each cluster and in total, and their duration.
	Limits fairqueue.Limits
	// Restrictions list the forbidden objects of add-ons of Custom catalogues.
	Restrictions catalogue.Restrictions
	// Variables of add-ons, by their name: the defaults of .Variables in templates.
	Variables map[string]map[string]any
}

// Connections return a connection to a user cluster, or why there is none, without waiting.
type Connections interface {
	Get(cluster target.Description, subscriber string, wake func()) (*cluster.Connection, error)
	Report(cluster target.Ref, err error)
	OnSwap(swapped func(target.Ref))
	Origin(ctx context.Context, cluster target.Ref) (types.UID, error)
}

// Records store release records on the seed.
type Records interface {
	installer.RecordReader
	installer.RecordWriter
	// Clusters are those in which an installation has objects.
	Clusters(ctx context.Context, namespace, installation string) ([]kubermaticv1.ClusterIdentity, error)
}

// Dependencies are the objects that the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache, which has only the merged AddonCatalogues.
	Client client.Client
	// Marks verify that an AddonCatalogue is a merged catalogue.
	Marks *mergedcatalogue.Marks
	// Marked caches the Secrets and ConfigMaps that are marked for us. It is a separate cache, since a seed has many
	// others, which must not be held in memory.
	Marked cache.Cache
	// Direct reads from the API server the content that Marked leaves out: see TrimMarked.
	Direct client.Reader
	// Held limits the memory that the cache uses for installations.
	Held        *budget.Budget[kubermaticv1.AddonInstallation, *kubermaticv1.AddonInstallation]
	Recorder    events.EventRecorder
	Finder      cluster.Finder
	Connections Connections
	Store       fetch.Store
	SourceKinds fetch.Kinds
	// Renders keeps renderings, and creates missing ones.
	Renders render.Keeper
	// Values keeps the results of valuesTemplates.
	Values render.ValuesKeeper
	// Platform and ClusterSecrets provide template data, in addition to the Cluster.
	Platform       Platform
	ClusterSecrets ClusterSecrets
	// Seen reads the objects of Cluster API that valuesTemplates see.
	Seen SeenOfCAPI
	// Images are rewritten in rendered objects.
	Images  images.Rules
	Records Records
	// Access maintains credentials for the hub; nil: the platform issues none. AccessHeld is the cache in which it
	// reads the seed. Neighbours report whether a cluster is alone in its namespace.
	Access     Access
	AccessHeld cache.Cache
	Neighbours Neighbours
	// PullSecret is copied to user clusters; nil: no copies.
	PullSecret *pullsecret.Records
	// InputsKey keys the hash of inputs; it is the same for the whole seed.
	InputsKey []byte
	// QueueMetrics are about the queue's lanes; nil: none.
	QueueMetrics *fairqueue.Metrics
	// Metrics count the controller's actions; nil: none.
	Metrics *Metrics
	// Clock is for tests; nil: the real one.
	Clock   clock.WithTicker
	Options Options
}

// Reconciler is the AddonInstallationController.
type Reconciler struct {
	Dependencies
	installer  *installer.Installer
	renderer   *rendering.Renderer
	memories   memories
	dependents dependents
	awaiting   awaiting
	clusters   clusters
	queue      *fairqueue.Queue[reconcile.Request]
	stepsOf    map[course][]loop.Step[facts]
}

// New returns the controller.
func New(dependencies Dependencies) *Reconciler {
	dependencies.Metrics = cmp.Or(dependencies.Metrics, NewMetrics(prometheus.NewRegistry()))
	dependencies.Clock = cmp.Or[clock.WithTicker](dependencies.Clock, clock.RealClock{})
	r := &Reconciler{
		Dependencies: dependencies,
		installer: &installer.Installer{
			Reads: dependencies.Records, Writes: dependencies.Records, Pull: dependencies.PullSecret,
			Interval: dependencies.Options.DriftInterval, Rules: health.NewPrograms(dependencies.Clock.Now), Now: dependencies.Clock.Now,
		},
		renderer: rendering.New(dependencies.Renders, dependencies.Images, dependencies.InputsKey),
	}
	r.stepsOf = r.courses()
	return r
}

// Reconcile brings one installation closer to the requested state.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	installation := &kubermaticv1.AddonInstallation{}
	if err := r.Client.Get(ctx, request.NamespacedName, installation); err != nil {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	facts := r.factsOf(installation)
	facts.memory.catchUp(installation)
	run := loop.Start(r.Client, installation)
	facts.live = run
	within, end := r.begin(ctx, request)
	defer end()

	if !isRemoved(installation) && r.isInTheWay(within, request, facts) {
		return loop.Result(facts.memory.awaited.next(r.Clock.Now())), nil
	}
	if isRemoved(installation) {
		outcome := r.remove(ctx, within, facts)
		if outcome.Is(loop.Done) {
			r.forget(request.NamespacedName)
			if err := run.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, false); err != nil {
				return ctrl.Result{}, err
			}
			r.reportLeft(ctx, facts)
			return r.free(ctx, facts)
		}
		project(facts, outcome, r.Clock.Now())
		return r.finish(ctx, run, facts, outcome)
	}
	if installation.DeletionTimestamp.IsZero() { // the API server refuses new finalizers on an object that is being deleted
		if err := run.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, true); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	outcome := r.run(within, facts, install)
	if facts.cluster.Deleted {
		outcome = r.goWithCluster(within, facts, outcome)
	} else {
		outcome = facts.overdue(within, r.maintain(within, facts, asGivenUp(facts, outcome)))
		outcome = facts.backOff(outcome, r.Clock.Now())
		outcome = r.await(within, facts, outcome)
	}
	had := accessOf(installation)
	project(facts, outcome, r.Clock.Now())
	r.Metrics.measure(facts, r.Clock.Now())
	r.Metrics.credentials(facts, had)
	r.reportChanges(ctx, facts)
	return r.finish(ctx, run, facts, outcome)
}

// forget drops the data of a deleted installation.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.memories.byName.Delete(name)
	r.dependents.forget(name)
	r.awaiting.forget(name)
	r.clusters.forget(name)
	r.Seen.Unread(name)
}

// finish returns the result of the outcome, remembers the written status and reports its changes.
func (r *Reconciler) finish(
	ctx context.Context, run *loop.Loop[*kubermaticv1.AddonInstallation], f *facts, outcome *loop.Outcome,
) (ctrl.Result, error) {
	if outcome.Is(loop.NotMine) { // another worker reports on it, and changes the remembered status
		r.memories.byName.Delete(client.ObjectKeyFromObject(f.installation))
		return run.Finish(ctx, outcome)
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	f.hideValues()
	r.dependents.note(f.of(), f.installation, f.run.Record())
	before := f.installation.ResourceVersion
	result, err := run.Finish(ctx, outcome)
	if err == nil && f.installation.ResourceVersion != before {
		f.memory.wrote(f.installation)
	}
	if err != nil {
		f.memory.awaited = nil // the status has to be written first
	} else {
		r.reportReady(ctx, f)
		r.reportLeft(ctx, f)
	}
	return result, err
}

const (
	// saveTimeout bounds one write of status or records on the seed.
	saveTimeout = 30 * time.Second
	// overdueRecheck is the wait after a reconciliation that exceeded its time and waits for something else.
	overdueRecheck = time.Minute
)

type outerKey struct{}

// begin returns the context of a reconciliation, which ends when its time is exceeded.
func (r *Reconciler) begin(ctx context.Context, request ctrl.Request) (within context.Context, end func()) {
	within = context.WithValue(ctx, outerKey{}, ctx)
	return r.queue.Begin(remote.Within(within, "one reconciliation", remote.PassTotals), request)
}

// overdue is the outcome of a reconciliation that exceeded its time. A failure, or a wait, is then reported as caused
// by the slow cluster. A problem that only an edit solves is reported unchanged, with a recheck.
func (f *facts) overdue(within context.Context, outcome *loop.Outcome) *loop.Outcome {
	var late *fairqueue.OverdueError
	if !errors.As(context.Cause(within), &late) {
		return outcome
	}
	f.run.Lost()
	switch {
	case outcome.Is(loop.Stalled):
		outcome.Recheck = max(outcome.Recheck, overdueRecheck)
		return outcome
	case outcome.Is(loop.Done, loop.NotMine),
		outcome.Is(loop.RetryAt) && outcome.Recheck > 0, // it waits for something else
		f.run.Connection == nil:                         // the reconciliation did not reach connect
		return outcome
	}
	slow := &cluster.NotConnectedError{
		Cluster: f.cluster.Name, Reason: kubermaticv1.ReasonClusterUnreachable,
		Message: fmt.Sprintf("the API server did not answer all calls for this installation within %s", late.After),
	}
	return &loop.Outcome{
		Kind: loop.RetryAt, Condition: kubermaticv1.ConditionReady, Reason: slow.Reason, Message: slow.Error(), Unknown: true,
	}
}

// NewSavingClient returns a client for records, which it reads with reader. Its calls do not end with the
// reconciliation's context, so that finished work is saved even if the user cluster was slow.
func NewSavingClient(c client.Client, reader client.Reader) revision.Client {
	return savingClient{c, reader}
}

type savingClient struct {
	client client.Client
	reader client.Reader
}

func (c savingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return outside(ctx, func(ctx context.Context) error { return c.reader.Get(ctx, key, object, options...) })
}

func (c savingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return outside(ctx, func(ctx context.Context) error { return c.reader.List(ctx, list, options...) })
}

func (c savingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return outside(ctx, func(ctx context.Context) error { return c.client.Create(ctx, object, options...) })
}

func (c savingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return outside(ctx, func(ctx context.Context) error { return c.client.Update(ctx, object, options...) })
}

func (c savingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return outside(ctx, func(ctx context.Context) error { return c.client.Delete(ctx, object, options...) })
}

// outside calls a function in the context with which the reconciliation began, keeping the trace.
func outside(within context.Context, call func(context.Context) error) error {
	outer, isRunning := within.Value(outerKey{}).(context.Context)
	if !isRunning {
		return call(within)
	}
	ctx, cancel := context.WithTimeout(tracing.Under(outer, within), saveTimeout)
	defer cancel()
	return call(ctx)
}
