package loop

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const shortestPause = 15 * time.Millisecond

// Gathering is for a controller with one request for all objects: a single change is reconciled almost at once. While
// changes keep coming, each reconciliation waits twice as long for more of them as the previous one.
type Gathering struct {
	// Longest is the longest pause, and the time without changes that resets the pause.
	Longest time.Duration

	mutex   sync.Mutex
	pause   time.Duration
	changed time.Time
}

// Pause is the time until the reconciliation for a change that came now.
func (g *Gathering) Pause(now time.Time) time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if now.Sub(g.changed) > g.Longest {
		g.pause = shortestPause
	}
	g.changed = now
	return g.pause
}

// Begin notes that a reconciliation begins.
func (g *Gathering) Begin() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.pause = min(2*max(g.pause, shortestPause), g.Longest)
}

// Ask enqueues a reconciliation for a change that came now.
func (g *Gathering) Ask(queue workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request) {
	queue.AddAfter(request, g.Pause(time.Now()))
}

// Changes enqueues a reconciliation for each event.
func (g *Gathering) Changes(request reconcile.Request) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, _ event.CreateEvent, q queue) { g.Ask(q, request) },
		UpdateFunc:  func(_ context.Context, _ event.UpdateEvent, q queue) { g.Ask(q, request) },
		DeleteFunc:  func(_ context.Context, _ event.DeleteEvent, q queue) { g.Ask(q, request) },
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { g.Ask(q, request) },
	}
}

// Wrap wraps the reconciler for which changes are gathered.
func (g *Gathering) Wrap(of reconcile.Func) reconcile.Func {
	return func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		g.Begin()
		return of(ctx, request)
	}
}
