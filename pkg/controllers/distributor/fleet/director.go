package fleet

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// writeEvery is the time between two writes of a set's status, after the first three of a change.
const writeEvery = 2 * time.Second

// Workers accept orders for the copies of a set, by seed.
type Workers interface {
	Order(set string, bySeed map[string]copies.Order)
}

// Director directs the rollout of each set.
type Director struct {
	ledger
	client   client.Client
	recorder events.EventRecorder
	clock    clock.Clock
	workers  Workers

	writes sync.Mutex
	// written has, by name, when a status may be written next, and the reported parts of it.
	written map[types.NamespacedName]written
}

type written struct {
	writes   backoff.Writes
	reported reported
}

// New returns a Director, which needs Through before it runs.
func New(client client.Client, recorder events.EventRecorder, clock clock.Clock) *Director {
	return &Director{
		ledger: ledger{now: clock.Now}, client: client, recorder: recorder, clock: clock, written: map[types.NamespacedName]written{},
	}
}

// Through sets the workers that get the orders.
func (d *Director) Through(workers Workers) { d.workers = workers }

// SetupWithManager registers controller distributor-sets.
func (d *Director) SetupWithManager(mgr ctrl.Manager, from cache.Cache) error {
	return loop.Register(mgr, "distributor-sets", controller.Options{Reconciler: d, MaxConcurrentReconciles: 2},
		// Edits of status are replaced; edits of the spec go to the ledger first.
		source.Kind[client.Object](from, &v1.AddonSet{}, &handler.EnqueueRequestForObject{}),
		source.Func(d.attach))
}

// Reconcile gives orders for one set, and writes its status, once the distributor has read its present generation.
func (d *Director) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1.AddonSet{}
	if err := d.client.Get(ctx, request.NamespacedName, object); err != nil {
		d.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	f, known := d.facts(object)
	if !known {
		return ctrl.Result{}, nil
	}
	if f.Reason == v1.ReasonWrongNamespace {
		f.seeds = nil // a set of the same name may be in the right namespace
		return d.write(ctx, object, &f, &decision{})
	}
	run := loop.Start(d.client, object)
	if f.Refusal == "" && object.DeletionTimestamp == nil {
		if err := run.SetFinalizer(ctx, v1.FinalizerCleanupSet, true); err != nil {
			return ctrl.Result{}, err
		}
	}
	decided := decide(object, &f)
	d.workers.Order(object.Name, decided.orders)
	if decided.gone {
		return ctrl.Result{}, run.SetFinalizer(ctx, v1.FinalizerCleanupSet, false)
	}
	return d.write(ctx, object, &f, &decided)
}

// write writes the status: after the first three writes of a change, at most every two seconds.
func (d *Director) write(ctx context.Context, object *v1.AddonSet, f *facts, decided *decision) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(object)
	last, known := d.last(key)
	if !known {
		last = written{backoff.NewWrites(writeEvery), reportedIn(&object.Status)}
		d.remember(key, last)
	}
	run := loop.Start(d.client, object)
	next := statusOf(object, f, decided)
	if equality.Semantic.DeepEqual(object.Status, next) {
		return loop.Result(&loop.Outcome{Kind: loop.Done, Recheck: decided.recheck}), nil
	}
	if wait := last.writes.Wait(d.clock.Now()); wait > 0 {
		return loop.Result(&loop.Outcome{Kind: loop.Done, Recheck: wait}), nil
	}
	object.Status = next
	result, err := run.Finish(ctx, &loop.Outcome{Kind: loop.Done, Recheck: decided.recheck})
	if err != nil {
		return result, err
	}
	d.announce(ctx, object, last.reported.update(&next, &decided.fleet))
	d.remember(key, last)
	return result, nil
}

func (d *Director) last(key types.NamespacedName) (written, bool) {
	d.writes.Lock()
	defer d.writes.Unlock()
	found, ok := d.written[key]
	return found, ok
}

func (d *Director) remember(key types.NamespacedName, last written) {
	d.writes.Lock()
	defer d.writes.Unlock()
	d.written[key] = last
}

func (d *Director) forget(key types.NamespacedName) {
	d.writes.Lock()
	defer d.writes.Unlock()
	delete(d.written, key)
}
