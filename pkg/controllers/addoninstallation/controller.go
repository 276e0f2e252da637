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
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/tracing"
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
	// OrderTimeout is for how long slots are waited for, and dependencies of what is applied already;
	// 0: not at all.
	OrderTimeout time.Duration
	// GoingTime is for how long installations are removed from a cluster that is being deleted, since
	// its deletion; 0: goingTime.
	GoingTime time.Duration
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// Passes bound how many installations are worked on at a time, for each cluster and together,
	// and how long.
	Passes fairqueue.Limits
	// Restrictions are what add-ons of Custom catalogues don't get here.
	Restrictions catalogue.Restrictions
	// Variables of add-ons, by their name: what templates see below .Variables where no value says
	// otherwise.
	Variables map[string]map[string]any
}

// Connections answer at once with a connection to a user cluster, or why there is none.
type Connections interface {
	Get(cluster target.Description, subscriber string, wake func()) (*cluster.Connection, error)
	Report(cluster target.Ref, err error)
	OnSwap(swapped func(target.Ref))
	Origin(ctx context.Context, cluster target.Ref) (types.UID, error)
}

// Records keep release records on the seed.
type Records interface {
	installer.RecordReader
	installer.RecordWriter
	// Clusters are those that an installation has some of.
	Clusters(ctx context.Context, namespace, installation string) ([]kubermaticv1.ClusterIdentity, error)
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache, which holds of AddonCatalogues the merged ones.
	Client client.Client
	// Marks tells merged catalogues from whatever else has their names.
	Marks *mergedcatalogue.Marks
	// Marked holds the Secrets and ConfigMaps that are marked for our use. It is a cache of its
	// own, since a seed has many more of both that must not be held in memory.
	Marked cache.Cache
	// Direct reads from the API server what Marked has left out: see TrimMarked.
	Direct client.Reader
	// Held is what the cache holds of installations.
	Held        *budget.Budget[kubermaticv1.AddonInstallation, *kubermaticv1.AddonInstallation]
	Recorder    events.EventRecorder
	Finder      cluster.Finder
	Connections Connections
	Store       fetch.Store
	SourceKinds fetch.Kinds
	// Renders keeps renderings, and makes those it has not.
	Renders render.Keeper
	// Values keeps what valuesTemplates render to.
	Values render.ValuesKeeper
	// Platform and ClusterSecrets are where template data comes from, besides the Cluster.
	Platform       Platform
	ClusterSecrets ClusterSecrets
	// Seen is what valuesTemplates see of Cluster API besides.
	Seen SeenOfCAPI
	// Images are rewritten in rendered objects.
	Images  rendering.Images
	Records Records
	// Access keeps credentials for the hub; nil: the platform gives out none. AccessHeld is the cache that it reads of the seed, and
	// Neighbours tell whether a cluster is alone in its namespace.
	Access     Access
	AccessHeld cache.Cache
	Neighbours Neighbours
	// PullSecret is copied to user clusters; nil: none is.
	PullSecret *pullsecret.Records
	// InputsKey keys the hash of inputs; it is the same for the whole seed.
	InputsKey []byte
	// QueueMetrics are about the queue's lanes; nil: none.
	QueueMetrics *fairqueue.Metrics
	// Metrics count what is done; nil: nobody reads them.
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

// New makes the controller.
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

// Reconcile brings one installation closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	installation := &kubermaticv1.AddonInstallation{}
	if err := r.Client.Get(ctx, request.NamespacedName, installation); err != nil {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	facts := r.factsOf(installation)
	facts.memory.catchUp(installation)
	pass := loop.Start(r.Client, installation)
	facts.live = pass
	within, end := r.begin(ctx, request)
	defer end()

	if !isRemoved(installation) && r.isInTheWay(within, request, facts) {
		return loop.Result(facts.memory.awaited.next(r.Clock.Now())), nil
	}
	if isRemoved(installation) {
		outcome := r.remove(ctx, within, facts)
		if _, done := outcome.(loop.Done); done {
			r.forget(request.NamespacedName)
			if err := pass.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, false); err != nil {
				return ctrl.Result{}, err
			}
			r.reportLeft(ctx, facts)
			return r.free(ctx, facts)
		}
		project(facts, outcome, r.Clock.Now())
		return r.finish(ctx, pass, facts, outcome)
	}
	if installation.DeletionTimestamp.IsZero() { // what is being deleted gets no new finalizers
		if err := pass.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, true); err != nil {
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
	return r.finish(ctx, pass, facts, outcome)
}

// forget drops what is known of an installation that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.memories.byName.Delete(name)
	r.dependents.forget(name)
	r.awaiting.forget(name)
	r.clusters.forget(name)
	r.Seen.Unread(name)
}

// finish hands the outcome over, remembers the status that was written and reports what is new in
// it.
func (r *Reconciler) finish(
	ctx context.Context, pass *loop.Loop[*kubermaticv1.AddonInstallation], f *facts, outcome loop.Outcome,
) (ctrl.Result, error) {
	if outcome == (loop.NotMine{}) { // its worker reports on it, and changes what was remembered
		r.memories.byName.Delete(client.ObjectKeyFromObject(f.installation))
		return pass.Finish(ctx, outcome)
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	f.hideValues()
	r.dependents.note(f.of(), f.installation, f.pass.Record())
	before := f.installation.ResourceVersion
	result, err := pass.Finish(ctx, outcome)
	if err == nil && f.installation.ResourceVersion != before {
		f.memory.wrote(f.installation)
	}
	if err != nil {
		f.memory.awaited = nil // the status is to be written first
	} else {
		r.reportReady(ctx, f)
		r.reportLeft(ctx, f)
	}
	return result, err
}

const (
	// saveTimeout bounds one write of status or records on the seed.
	saveTimeout = 30 * time.Second
	// overdueRecheck is when the next pass begins of one that waits for something else and took too
	// long.
	overdueRecheck = time.Minute
)

type outerKey struct{}

// begin gives the context of a pass, which ends when the pass has taken too long.
func (r *Reconciler) begin(ctx context.Context, request ctrl.Request) (within context.Context, end func()) {
	within = context.WithValue(ctx, outerKey{}, ctx)
	return r.queue.Begin(remote.Within(within, "one pass", remote.PassTotals), request)
}

// overdue is the outcome of a pass that was ended: what failed, or waits, then does so since the
// cluster was too slow. That only an edit helps is reported all the same, with a recheck.
func (f *facts) overdue(within context.Context, outcome loop.Outcome) loop.Outcome {
	var late *fairqueue.OverdueError
	if !errors.As(context.Cause(within), &late) {
		return outcome
	}
	f.pass.Lost()
	switch o := outcome.(type) {
	case loop.Done, loop.NotMine:
		return outcome
	case loop.RetryAt:
		if o.After > 0 { // it waits for something else
			return outcome
		}
	case loop.Stalled:
		o.Recheck = max(o.Recheck, overdueRecheck)
		return o
	}
	if f.pass.Connection == nil { // the pass did not come that far
		return outcome
	}
	slow := &cluster.NotConnectedError{
		Cluster: f.cluster.Name, Reason: kubermaticv1.ReasonClusterUnreachable,
		Message: fmt.Sprintf("the API server did not answer within %s all that is asked of it for this installation", late.After),
	}
	return loop.RetryAt{
		Condition: kubermaticv1.ConditionReady, Reason: slow.Reason, Message: slow.Error(), Unknown: true,
	}
}

// NewSavingClient makes a client for records, which it reads with reader. Its calls don't end with
// a pass that makes them: what was done is saved, however slow the user cluster was.
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

// outside makes a call in the context that a pass began with, below what is traced.
func outside(within context.Context, call func(context.Context) error) error {
	outer, inPass := within.Value(outerKey{}).(context.Context)
	if !inPass {
		return call(within)
	}
	ctx, cancel := context.WithTimeout(tracing.Under(outer, within), saveTimeout)
	defer cancel()
	return call(ctx)
}
