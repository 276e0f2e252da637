package addonset

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace holds the merged catalogues and the copies of sets. Default:
	// addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
	// Concurrency is the number of clusters worked on at a time. Default: 8.
	Concurrency int
	// StatusInterval is the time between two writes of a set's status, after the first three of a change. Default: 2 s.
	StatusInterval time.Duration
}

// Dependencies are what the controller works with.
type Dependencies struct {
	// Client reads from the manager's cache: of AddonCatalogues the merged ones, of AddonSets the
	// copies.
	Client client.Client
	Marks  *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Finder   cluster.Finder
	Live     cluster.LiveReader
	Clock    clock.PassiveClock
	Options  Options
	// Core are the figures of the Core set, which another controller carries out: metrics are over the
	// sets of both types. Nil: there is none.
	Core func() (clusters v1.ClusterCounts, reason string, moves int64)
}

// Reconciler is the AddonSetController. It has two queues: requests of the one name a set, requests
// of the other are those of cluster.Request.
type Reconciler struct {
	Dependencies
	setFailures, clusterFailures loop.Failures
	moved                        moveCounter

	// mutex is for all that follows: what is known of sets and clusters. Nothing is called under it
	// but caches.
	mutex sync.Mutex
	// passed are the names of copies that were read, and started says that all were that there are:
	// before, who wants what is not known, and nothing is written.
	passed map[string]bool
	// unsure are the copies that are there and can't be gone by: not marked, refused, or not taken yet.
	unsure map[string]*claims
	// seen are the copies of which it is known what they may want, as they were then.
	seen    map[string]seen
	started bool
	sets    map[string]*running
	rivals  *rivals
	// entries are those of the add-ons that sets depend on.
	entries map[string]*catalogue.Entry
	// platform are the platform's values, by set and item.
	platform map[string]map[string]platformValues
	// secrets has the Secrets of the platform; nil where the controller is not set up.
	secrets client.Reader
	// present are the clusters that there are, selected by a set or not.
	present map[cluster.Key]bool
	caches  caches
	written waves.Written
	queues  queues
}

// running is a set that is carried out.
type running struct {
	*set
	*resolver
	// revision and startedAt are in the status of the copy; empty before the first.
	revision  string
	startedAt time.Time
	// revised is the resolver, of the set and its catalogues, that the revision was taken with last.
	revised *resolver
	// contents, by item, and kkp, the platform's version, are what the revision was taken from.
	contents map[string]string
	kkp      string
	// counted says that every cluster was counted, with this set, revision and catalogue.
	counted bool
	// isHeld says that something in some cluster waits for a copy that can't be gone by.
	isHeld bool
	tally  *rollout.Tally
	// first are the contents that were seen first after a start, where those of the revision are not
	// known; nil as a rule.
	first map[string]string
	// clusters by their name among all of the seed are those in the tally, and names theirs by key.
	clusters map[string]*known
	names    map[cluster.Key]string
	// granted are names of clusters that were granted places: a halt looks at no others.
	granted map[string]bool
	// guard says which removals wait.
	guard waves.Guard
	// decided last, and the status that was written last.
	decision rollout.Decision
	shown    shown
}

// known is what is kept of one cluster.
type known struct {
	key cluster.Key
	waves.Move
	// repairs says that others changed what the set wrote.
	repairs bool
}

// queues wake passes.
type queues struct {
	sets, clusters workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New makes the controller.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 8)
	options.StatusInterval = cmp.Or(options.StatusInterval, 2*time.Second)
	if dependencies.Clock == nil {
		dependencies.Clock = clock.RealClock{}
	}
	return &Reconciler{
		Dependencies: dependencies, sets: map[string]*running{}, rivals: newRivals(nil), entries: map[string]*catalogue.Entry{},
		written: waves.Written{}, passed: map[string]bool{}, unsure: map[string]*claims{}, seen: map[string]seen{},
		platform: map[string]map[string]platformValues{},
	}
}

// reconcileSet makes one pass over a set: what it is, how its clusters stand, which may move.
func (r *Reconciler) reconcileSet(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &setFacts{name: request.Name}
	outcome := r.setFailures.BackOff(request.Name, loop.Run(ctx, r.setSteps(), f))
	if retry, failed := outcome.(loop.RetryAt); failed {
		log.FromContext(ctx).Info("a pass over an AddonSet failed", "problem", retry.Message, "after", retry.After.String())
	}
	return loop.Result(outcome), nil
}

// reconcileCluster makes one pass over a cluster: how it stands in every set, and the writes of
// those that may move it.
func (r *Reconciler) reconcileCluster(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &clusterFacts{asked: cluster.Requested(request)}
	outcome := r.clusterFailures.BackOff(request.String(), loop.Run(ctx, r.clusterSteps(), f))
	if retry, failed := outcome.(loop.RetryAt); failed {
		if !f.next.IsZero() { // time alone may change how it stands
			retry.After = min(retry.After, max(f.next.Sub(r.Clock.Now()), time.Millisecond))
			outcome = retry
		}
		log.FromContext(ctx).Info("a pass over a cluster's sets failed", "problem", retry.Message, "after", retry.After.String())
	}
	return loop.Result(outcome), nil
}

// setFacts are what a pass over a set knows.
type setFacts struct {
	name string
	copy *v1.AddonSet
	// set as it was read.
	set     *set
	running *running
	// revision that the set has now.
	revision, kkp string
	contents      map[string]string
	// next is when to come back; 0: never.
	next time.Duration
	// gateProblem says why annotation gate can't be read; nil as a rule.
	gateProblem error
}

// clusterFacts are what a pass over a cluster knows.
type clusterFacts struct {
	asked target.Ref
	// problem is why nothing is written in this pass, or no more; nil as a rule. Unasked is the
	// installation of which the API server could not be asked; empty where that is not the problem.
	problem error
	unasked string
	tasks   []task
	// next is when to come back; zero: never.
	next time.Time
}

func failed(err error) loop.Outcome { return loop.RetryAt{Message: err.Error()} }
