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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// Options are the controller's settings.
type Options struct {
	// CatalogueNamespace has the merged catalogues and the copies of sets. Default: addon-catalogue.
	CatalogueNamespace string
	// WorkerName restricts the controller to Clusters with that label; empty: those without.
	WorkerName string
	// AllowPrereleases says that a platform of a pre-release version matches ranges that name no pre-release.
	AllowPrereleases bool
	// Concurrency is the number of clusters that are reconciled at a time. Default: 8.
	Concurrency int
	// StatusInterval is the time between two writes of a set's status, after the first three writes of a change. Default: 2 s.
	StatusInterval time.Duration
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Client reads from the manager's cache. Of AddonCatalogues it has the merged ones, of AddonSets the copies.
	Client client.Client
	Marks  *mergedcatalogue.Marks
	// Reader reads past the cache.
	Reader   client.Reader
	Recorder events.EventRecorder
	Finder   cluster.Finder
	Live     cluster.LiveReader
	Clock    clock.PassiveClock
	Options  Options
	// Core returns the figures of the Core set, which another controller executes: the metrics cover sets of both
	// types. Nil if there is none.
	Core func() (clusters v1.ClusterCounts, reason string, moves int64)
}

// Reconciler is the AddonSetController. It has two queues: requests of one name a set, requests of the other are
// those of cluster.Request.
type Reconciler struct {
	Dependencies
	setFailures, clusterFailures loop.Failures
	moved                        moveCounter

	// mutex protects all following fields, the memory about sets and clusters. Under it only caches are called.
	mutex sync.Mutex
	// passed are the names of copies that were read, and started says that all existing ones were: before that, the
	// claims of sets are unknown, and nothing is written.
	passed map[string]bool
	// unusable are the existing copies that can't be used: not marked, refused, or not read into memory yet.
	unusable map[string]*claims
	// seen has, by name, each copy whose possible claims are known, in the state in which they were noted.
	seen        map[string]seen
	started     bool
	sets        map[string]*running
	competitors *competitors
	// entries are the catalogue entries of the add-ons that sets depend on.
	entries map[string]*catalogue.Entry
	// unknown are the messages about those of them that no catalogue has.
	unknown map[string]string
	// platform are the platform's values, by set and item.
	platform map[string]map[string]platformValues
	// secrets reads the Secrets of the platform; nil if the controller is not set up.
	secrets client.Reader
	// present are the existing clusters, selected by a set or not.
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
	// revised is the resolver, of the set and its catalogues, of the last revision.
	revised *resolver
	// contents, by item, and kkp, the platform's version, are the basis of the revision.
	contents map[string]string
	kkp      string
	// counted says that every cluster was counted, with this set, revision and catalogue.
	counted bool
	// isHeld says that a change in some cluster waits for a copy that can't be used.
	isHeld bool
	tally  *rollout.Tally
	// first are the first contents that were read after a start, if those of the revision are unknown; usually nil.
	first map[string]string
	// clusters are those in the tally, by their name among all clusters of the seed, and names are these names by key.
	clusters map[string]*known
	names    map[cluster.Key]string
	// granted are names of clusters that were granted places: a halt checks no others.
	granted map[string]bool
	// guard says which removals wait for approval.
	guard waves.Guard
	// decision is the last decision, and shown the status that was written last.
	decision rollout.Decision
	shown    shown
}

// known is the memory about one cluster.
type known struct {
	key cluster.Key
	waves.Move
	// repairs says that other clients changed fields that the set wrote.
	repairs bool
}

// queues start reconciliations.
type queues struct {
	sets, clusters workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.Concurrency = cmp.Or(options.Concurrency, 8)
	options.StatusInterval = cmp.Or(options.StatusInterval, 2*time.Second)
	if dependencies.Clock == nil {
		dependencies.Clock = clock.RealClock{}
	}
	return &Reconciler{
		Dependencies: dependencies, sets: map[string]*running{}, competitors: newCompetitors(nil), entries: map[string]*catalogue.Entry{},
		unknown: map[string]string{}, written: waves.Written{}, passed: map[string]bool{}, unusable: map[string]*claims{},
		seen: map[string]seen{}, platform: map[string]map[string]platformValues{},
	}
}

// reconcileSet reconciles a set: its content, the state of its clusters, and which of them may move.
func (r *Reconciler) reconcileSet(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &setFacts{name: request.Name}
	outcome := r.setFailures.BackOff(request.Name, loop.Run(ctx, r.setSteps(), f))
	if outcome.Is(loop.RetryAt) {
		log.FromContext(ctx).Info("reconciling an AddonSet failed", "problem", outcome.Message, "after", outcome.Recheck.String())
	}
	return loop.Result(outcome), nil
}

// reconcileCluster reconciles a cluster: its state in every set, and the writes of those sets that may move it.
func (r *Reconciler) reconcileCluster(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &clusterFacts{asked: cluster.Requested(request)}
	outcome := r.clusterFailures.BackOff(request.String(), loop.Run(ctx, r.clusterSteps(), f))
	if outcome.Is(loop.RetryAt) {
		if !f.next.IsZero() { // time alone may change its state
			outcome.Recheck = min(outcome.Recheck, max(f.next.Sub(r.Clock.Now()), time.Millisecond))
		}
		log.FromContext(ctx).Info("reconciling a cluster's sets failed", "problem", outcome.Message, "after", outcome.Recheck.String())
	}
	return loop.Result(outcome), nil
}

// setFacts are the findings of one reconciliation of a set.
type setFacts struct {
	name string
	copy *v1.AddonSet
	// set is the set as it was read.
	set     *set
	running *running
	// revision is the one that the set has now.
	revision, kkp string
	contents      map[string]string
	// next is the delay until the next reconciliation; 0: none.
	next time.Duration
	// gateProblem is why annotation gate can't be read; usually nil.
	gateProblem error
}

// clusterFacts are the findings of one reconciliation of a cluster.
type clusterFacts struct {
	asked target.Ref
	// problem is why nothing, or nothing more, is written in this reconciliation; usually nil. unasked is the
	// installation about which the API server could not be asked; empty if that is not the problem.
	problem error
	unasked string
	tasks   []task
	// next is the time of the next reconciliation; zero: none.
	next time.Time
}

func failed(err error) *loop.Outcome { return &loop.Outcome{Kind: loop.RetryAt, Message: err.Error()} }
