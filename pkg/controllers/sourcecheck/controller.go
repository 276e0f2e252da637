package sourcecheck

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
)

// Options are the controller's settings.
type Options struct {
	// Namespace is the platform namespace, with the report. Default: kubermatic.
	Namespace string
	// CatalogueNamespace is the namespace of merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// AtOnce is how many sources are checked at a time. Default: 3.
	AtOnce int
	// Every is the time between two reads of the report. Default: 1 min.
	Every time.Duration
	// FirstPause is the delay after a failed check; it doubles up to an hour, or a day. Default: 1 min.
	FirstPause time.Duration
	// FetchWithin is the time limit for the fetch of a check. Default: 1 min.
	FetchWithin time.Duration
	// Clock is for these times. Default: the real one.
	Clock clock.PassiveClock
}

// Store tries sources.
type Store interface {
	Try(ctx context.Context, reference fetch.Reference, look func(ctx context.Context, content fetch.Snapshot) error) error
}

// Dependencies are the clients and settings that the controller uses.
type Dependencies struct {
	// Client reads merged catalogues from its cache, and writes the report; Reader reads the report past the cache.
	Client client.Client
	Reader client.Reader
	Marks  *mergedcatalogue.Marks
	// Source returns the reference of a version's source, with its credentials.
	Source func(ctx context.Context, source *v1.Source) (fetch.Reference, error)
	Store  Store
	// Trial renders the fetched content.
	Trial   *rendering.Trial
	Options Options
}

// Reconciler checks sources. There is one request for all of them.
type Reconciler struct {
	Dependencies
	// base outlives reconciliations: checks run in it.
	base  context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mutex    sync.Mutex
	schedule schedule
	// catalogues are the merged ones by name, as they were read.
	catalogues map[string]listed
	// before are the findings of an earlier process; nil until they were read.
	before *catalogue.SourceChecks
	seen   string
	seenAt time.Time
	readAt time.Time
	// changed says that the report lacks something.
	changed bool
}

// New returns the controller, with defaults for options that are not set.
func New(dependencies Dependencies) *Reconciler {
	options := &dependencies.Options
	options.Namespace = cmp.Or(options.Namespace, "kubermatic")
	options.CatalogueNamespace = cmp.Or(options.CatalogueNamespace, "addon-catalogue")
	options.AtOnce = cmp.Or(options.AtOnce, 3)
	options.Every = cmp.Or(options.Every, time.Minute)
	options.FirstPause = cmp.Or(options.FirstPause, time.Minute)
	options.FetchWithin = cmp.Or(options.FetchWithin, time.Minute)
	options.Clock = cmp.Or[clock.PassiveClock](options.Clock, clock.RealClock{})
	return &Reconciler{Dependencies: dependencies, schedule: newSchedule(), catalogues: map[string]listed{}}
}

var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "sources"}}

// SetupWithManager watches the merged catalogues in the manager's cache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{everything}
	})
	return loop.Register(mgr, "sourcecheck", controller.Options{Reconciler: r, MaxConcurrentReconciles: 1},
		source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.base, r.queue = ctx, queue
			r.Marks.OnChange(func() { queue.Add(everything) })
			queue.Add(everything)
			return nil
		}),
		source.Kind[client.Object](mgr.GetCache(), &v1.AddonCatalogue{}, toAll),
	)
}

// Reconcile reads the sources to check, writes the report if that is due, and starts as many checks as the limit
// allows.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.recall(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.gather(ctx); err != nil {
		return ctrl.Result{}, err
	}
	now := r.Options.Clock.Now()
	due := r.schedule.due(now)
	if now.Sub(r.readAt) >= r.interval() || r.changed && len(due) == 0 && len(r.schedule.busy) == 0 {
		if err := r.report(ctx); err != nil {
			return ctrl.Result{}, err
		}
		due = r.schedule.due(now)
	}
	for _, of := range r.schedule.next(due, r.Options.AtOnce) {
		go r.check(of)
	}
	return loop.Result(&loop.Outcome{Kind: loop.Done, Recheck: min(r.interval(), r.schedule.soonest(now))}), nil
}

// interval is the time until the next reconciliation, shorter while the seed does not know its share.
func (r *Reconciler) interval() time.Duration {
	if r.schedule.share.Seed == "" {
		return min(r.Options.Every, 10*time.Second)
	}
	return r.Options.Every
}

// check checks one source, outside of reconciliations.
func (r *Reconciler) check(of item) {
	began := r.Options.Clock.Now()
	found, err := r.look(r.base, of)
	found.slow = errors.Is(err, errSlow) || r.Options.Clock.Since(began) >= slowAfter
	if r.base.Err() != nil {
		return
	}
	if err != nil {
		log.FromContext(r.base).Info("a source can't be checked yet", "catalogue", of.catalogue,
			"problem", of.use.Text(catalogue.SourceFault{Message: err.Error()}))
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.changed = r.schedule.conclude(of, found, r.Options) || r.changed
	r.queue.Add(everything)
}

// listed are the sources of one merged catalogue.
type listed struct {
	uid             types.UID
	resourceVersion string
	items           []item
}

// gather reads the sources of the merged catalogues.
func (r *Reconciler) gather(ctx context.Context) error {
	var list v1.AddonCatalogueList
	err := r.Client.List(ctx, &list, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	found, changed := map[string]listed{}, false
	for i := range list.Items {
		object := &list.Items[i]
		if !r.Marks.Believes(object) || len(object.Spec.Addons) == 0 {
			continue
		}
		known := r.catalogues[object.Name]
		if known.uid != object.UID || known.resourceVersion != object.ResourceVersion {
			known, changed = listed{object.UID, object.ResourceVersion, itemsOf(object)}, true
		}
		found[object.Name] = known
	}
	if changed || len(found) != len(r.catalogues) {
		r.catalogues = found
		r.changed = r.schedule.want(found, r.before) || r.changed
	}
	return nil
}

// itemsOf are the sources of one merged catalogue.
func itemsOf(object *v1.AddonCatalogue) []item {
	origins, _ := catalogue.ReadOrigins(object) // without them the merged catalogue's own name is used
	addon := &object.Spec.Addons[0]
	var items []item
	for i := range addon.Versions {
		version := &addon.Versions[i]
		key := catalogue.SourceKey(version)
		if key == "" {
			continue
		}
		items = append(items, item{
			use: catalogue.SourceUse{Addon: string(addon.Name), Version: version.Version, Key: key}, at: i,
			catalogue: scheduledAs(origins[version.Version], object.Name), version: version,
		})
	}
	return items
}

// scheduledAs is the catalogue whose turn a version uses: the generated catalogues of one repository share the turn of the
// catalogue in git.
func scheduledAs(origin catalogue.Origin, merged string) string {
	return cmp.Or(origin.Git, origin.Catalogue, merged)
}
