package addoninstallation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace holds the merged catalogues.
	CatalogueNamespace string
	// DriftInterval is the time between two looks at an installation's objects.
	DriftInterval time.Duration
	// AllowPrereleases lets pre-releases of the platform match ordinary ranges.
	AllowPrereleases bool
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// Passes bound how many installations are worked on at a time, for each cluster and together, and how long.
	Passes fairqueue.Limits
	// Restrictions are what add-ons of Custom catalogues don't get here.
	Restrictions catalogue.Restrictions
	// Variables of add-ons, by their name: what templates see below .Variables where no value says otherwise.
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
	RecordReader
	SaveIntent(ctx context.Context, namespace string, record *revision.Record) error
	SaveApplied(ctx context.Context, namespace string, record *revision.Record) error
	Trim(ctx context.Context, namespace string, owner ownership.Owner, keep ...int) error
	Forget(ctx context.Context, namespace string, owner ownership.Owner) error
	Reown(ctx context.Context, namespace string, owner ownership.Owner, now kubermaticv1.ClusterIdentity) error
}

// RecordReader reads release records: the newest, or one revision; and the Clusters that an installation has some of.
type RecordReader interface {
	Clusters(ctx context.Context, namespace, installation string) ([]kubermaticv1.ClusterIdentity, error)
	Load(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error)
	LoadFirst(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error)
	LoadRevision(ctx context.Context, namespace string, owner ownership.Owner, revision int) (*revision.Record, error)
}

// Images rewrites the images of objects in place. Canonical is the same for the same rules.
type Images interface {
	Rewrite(objects []*unstructured.Unstructured)
	Canonical() []byte
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache, which holds of AddonCatalogues the merged ones.
	Client client.Client
	// Marks tells merged catalogues from whatever else has their names.
	Marks *mergedcatalogue.Marks
	// Marked holds the Secrets and ConfigMaps that are marked for our use. It is a cache of its own, since a seed has many
	// more of both that must not be kept in memory.
	Marked cache.Cache
	// Direct reads from the API server what Marked has left out: see TrimMarked.
	Direct      client.Reader
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
	// Images are rewritten in rendered objects.
	Images  Images
	Records Records
	// InputsKey keys the hash of inputs; it is the same for the whole seed.
	InputsKey []byte
	// QueueMetrics tell how the queue's lanes fare; nil: none.
	QueueMetrics *fairqueue.Metrics
	Options      Options
}

// Reconciler is the AddonInstallationController.
type Reconciler struct {
	Dependencies
	memories         memories
	views            views
	handovers        handovers
	dependents       dependents
	capabilityCharts searches[bool]
	secretContents   searches[bool]
	lookupCharts     searches[kindsAsked]
	queue            *fairqueue.Queue[reconcile.Request]
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	dependencies.Records = savedRecords{dependencies.Records}
	return &Reconciler{
		Dependencies:     dependencies,
		capabilityCharts: newSearches[bool](), secretContents: newSearches[bool](), lookupCharts: newSearches[kindsAsked](),
	}
}

// Reconcile brings one installation closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	installation := &kubermaticv1.AddonInstallation{}
	if err := r.Client.Get(ctx, request.NamespacedName, installation); err != nil {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	facts := &facts{installation: installation, memory: r.memories.of(installation)}
	facts.memory.catchUp(installation)
	pass := loop.Start(r.Client, installation)
	within, end := r.begin(ctx, request)
	defer end()

	if !isRemoved(installation) && r.isInTheWay(within, request, facts) {
		return loop.Result(loop.Waiting{Recheck: facts.memory.awaited.next()}), nil
	}
	if isRemoved(installation) {
		outcome := loop.Run(within, r.removalSteps(), facts)
		if _, done := outcome.(loop.Done); done {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, pass.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, false)
		}
		outcome = facts.backOff(facts.overdue(within, outcome))
		projectRemoval(facts, outcome)
		return r.finish(ctx, pass, facts, outcome)
	}
	if installation.DeletionTimestamp.IsZero() { // what is being deleted gets no new finalizers
		if err := pass.SetFinalizer(ctx, kubermaticv1.FinalizerCleanupInstallation, true); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	outcome := asGivenUp(facts, loop.Run(within, r.steps(), facts))
	outcome = facts.backOff(facts.overdue(within, r.maintain(within, facts, outcome)))
	outcome = r.await(within, facts, outcome)
	project(facts, outcome)
	r.announce(ctx, facts)
	return r.finish(ctx, pass, facts, outcome)
}

// forget drops what is known of an installation that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.memories.forget(name)
	r.dependents.forget(name)
}

// finish hands the outcome over, remembers the status that was written and tells what is new in it.
func (r *Reconciler) finish(
	ctx context.Context, pass *loop.Loop[*kubermaticv1.AddonInstallation], f *facts, outcome loop.Outcome,
) (ctrl.Result, error) {
	if outcome == (loop.NotMine{}) { // its worker tells of it, and changes what was remembered
		r.memories.forget(client.ObjectKeyFromObject(f.installation))
		return pass.Finish(ctx, outcome)
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	r.dependents.note(f)
	before := f.installation.ResourceVersion
	result, err := pass.Finish(ctx, outcome)
	if err == nil && f.installation.ResourceVersion != before {
		f.memory.wrote(f.installation)
	}
	if err != nil {
		f.memory.awaited = nil // the status is to be written first
	} else {
		r.tellTrouble(ctx, f)
	}
	return result, err
}
