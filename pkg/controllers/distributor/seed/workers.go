package seed

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// Memory for the concurrent answers of all seeds, and of one, in bytes.
const (
	answersAtOnce  = 128 << 20
	heaviestAnswer = 64 << 20
)

// Options are the settings of all workers.
type Options struct {
	// Platform is the namespace of the key of marks, Namespace that of merged catalogues.
	Platform, Namespace string
	// Resync is the time between two lists of a seed, CountEvery between two counts.
	Resync, CountEvery time.Duration
	Clock              clock.Clock
	// Fence stops writes; nil if there is none.
	Fence      *fence.Fence
	Identities *Identities
	Usage      *usage.Ledger
	Checkers   *Checkers
	// Report gets a worker's result after each reconciliation.
	Report func(State)
	// ReportSets gets the state of the copies of AddonSets after each check.
	ReportSets func(copies.State)
}

// Workers are the seeds' workers by name. Calls must not be concurrent, except for the end.
type Workers struct {
	options Options
	budget  *remote.Budget

	mutex   sync.Mutex
	base    context.Context // the life of all workers, which outlive the reconciliation that starts them
	end     context.CancelFunc
	running sync.WaitGroup
	byName  map[string]runningWorker
}

type runningWorker struct {
	*worker
	end context.CancelFunc
}

// NewWorkers starts no worker yet.
func NewWorkers(options Options) *Workers {
	base, end := context.WithCancel(context.Background())
	return &Workers{
		options: options, budget: remote.NewBudget(answersAtOnce), base: base, end: end, byName: map[string]runningWorker{},
	}
}

// Start ends all workers when the manager ends.
func (w *Workers) Start(ctx context.Context) error {
	<-ctx.Done()
	w.end()
	w.running.Wait()
	return nil
}

// Assign gives every target's worker its task, starts new workers, and ends those without a target. Workers continue
// after the context ends, and use its Tracer.
func (w *Workers) Assign(ctx context.Context, targets []Target, want *Wanted) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	present := map[string]bool{}
	for _, to := range targets {
		present[to.Name] = true
		w.assign(ctx, task{to, want})
	}
	for name, running := range w.byName {
		if !present[name] {
			running.end()
			delete(w.byName, name)
		}
	}
}

func (w *Workers) assign(by context.Context, first task) {
	name := first.target.Name
	if running, ok := w.byName[name]; ok {
		running.assign(first)
		return
	}
	ctx, end := context.WithCancel(tracing.From(by).Into(w.base))
	made := &worker{
		Options: w.options, name: name, budget: w.budget, wake: make(chan struct{}, 1), stir: make(chan struct{}, 1),
		breaking: make(chan struct{}, 1), orders: map[string]copies.Order{},
	}
	made.assign(first)
	w.byName[name] = runningWorker{made, end}
	w.running.Go(func() { made.run(ctx) })
}

// Order gives the workers their orders for the copies of one set, by seed. A worker without an order leaves gates as
// they are.
func (w *Workers) Order(set string, bySeed map[string]copies.Order) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for name, running := range w.byName {
		order, ok := bySeed[name]
		running.order(set, order, ok)
	}
}
