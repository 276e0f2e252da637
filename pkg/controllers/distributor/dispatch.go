package distributor

import (
	"context"
	"sync"
)

// workers are the seeds' workers by name. Passes come one at a time; only stop comes from elsewhere.
type workers struct {
	start func(ctx context.Context, name string) *worker

	mutex   sync.Mutex
	base    context.Context // the life of all workers, which outlive the pass that starts them
	end     context.CancelFunc
	running sync.WaitGroup
	byName  map[string]runningWorker
}

type runningWorker struct {
	*worker
	end context.CancelFunc
}

func newWorkers(start func(ctx context.Context, name string) *worker) *workers {
	base, end := context.WithCancel(context.Background())
	return &workers{start: start, base: base, end: end, byName: map[string]runningWorker{}}
}

// Start ends all workers when the manager ends, and waits for them.
func (w *workers) Start(ctx context.Context) error {
	<-ctx.Done()
	w.end()
	w.running.Wait()
	return nil
}

// ask gives every target's worker its order, starts new ones, and ends those whose Seed went. What they wrote stays.
func (w *workers) ask(targets []target, want *wanted) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	present := map[string]bool{}
	for _, to := range targets {
		present[to.name] = true
		w.worker(to.name).ask(order{to, want})
	}
	for name, running := range w.byName {
		if !present[name] {
			running.end()
			delete(w.byName, name)
		}
	}
}

func (w *workers) worker(name string) *worker {
	if running, ok := w.byName[name]; ok {
		return running.worker
	}
	ctx, end := context.WithCancel(w.base)
	made := w.start(ctx, name)
	w.byName[name] = runningWorker{made, end}
	w.running.Go(func() { made.run(ctx) })
	return made
}

func (r *Reconciler) newWorker(ctx context.Context, name string) *worker {
	return &worker{
		name: name, platform: r.options.Namespace, namespace: r.options.CatalogueNamespace, resync: r.options.Resync, clock: r.options.Clock,
		guard: r.confirm, wake: make(chan struct{}, 1), usage: r.usage, budget: r.budget, countEvery: r.options.CountEvery,
		fence: r.fence,
		report: func(state seedState) {
			if ctx.Err() == nil {
				r.board.seedChanged(state)
			}
		},
	}
}

func (r *Reconciler) dispatch(_ context.Context, p *pass) error {
	r.board.passed(p)
	r.usage.only(p.targets)
	r.workers.ask(p.targets, &wanted{
		addons: p.merged.Addons, refused: p.merged.Refused, secrets: p.secrets, held: p.held(), leave: p.leave,
	})
	return nil
}
