package child

import (
	"context"
	"sync"
	"time"
)

// pollInterval is the time between two readings of a busy child: what it can allocate in between is some ten MiB.
const pollInterval = 10 * time.Millisecond

// Words for what ran out, as in the flags.
const (
	limitMemory = "memory"
	limitCPU    = "cpu"
	limitTime   = "time"
)

// watch follows one rendering and kills its child past a limit.
type watch struct {
	process *process
	options Options
	stop    chan struct{}
	done    sync.WaitGroup
	// exceeded is the limit that the child was killed for; "" for none. It is read after end.
	exceeded string
}

// watchOver begins to watch. The deadline is the rendering's.
func watchOver(ctx context.Context, process *process, options Options) *watch {
	begun := &watch{process: process, options: options, stop: make(chan struct{})}
	begun.done.Go(func() { begun.run(ctx) })
	return begun
}

// end stops watching and says for which limit the child was killed.
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
