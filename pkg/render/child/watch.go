package child

import (
	"context"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// pollInterval is the time between two readings of a busy child, in which it can allocate some ten MiB.
const pollInterval = 10 * time.Millisecond

// Limits, under the names of their flags.
const (
	limitMemory = render.LimitMemory
	limitCPU    = render.LimitCPU
	limitTime   = render.LimitTime
)

// watch observes one rendering and kills its child past a limit.
type watch struct {
	process *process
	options Options
	stop    chan struct{}
	done    sync.WaitGroup
	// exceeded is the limit that the child was killed for; empty: none. It is read after end.
	exceeded string
}

func watchOver(ctx context.Context, process *process, options Options) *watch {
	begun := &watch{process: process, options: options, stop: make(chan struct{})}
	begun.done.Go(func() { begun.run(ctx) })
	return begun
}

// end stops watching, and returns the limit that the child was killed for.
func (w *watch) end() string {
	close(w.stop)
	w.done.Wait()
	return w.exceeded
}

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	deadline := time.NewTimer(w.options.Timeout)
	defer deadline.Stop()
	_, before, _ := w.process.usage.now()
	for {
		select {
		case <-w.stop:
			return
		case <-ctx.Done():
			w.process.kill()
			return
		case <-deadline.C:
			w.killFor(limitTime)
			return
		case <-ticker.C:
		}
		memory, spent, known := w.process.usage.now()
		switch {
		case !known:
		case memory > w.options.Memory:
			w.killFor(limitMemory)
			return
		case spent-before > w.options.CPU:
			w.killFor(limitCPU)
			return
		}
	}
}

func (w *watch) killFor(limit string) {
	w.exceeded = limit
	w.process.kill()
}
