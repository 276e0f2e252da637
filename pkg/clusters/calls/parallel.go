package calls

import (
	"context"
	"sync"
)

// parallel is how many calls run at a time, over one HTTP/2 connection.
const parallel = 12

// Each calls do for all items, several at a time, and waits for all calls. If one fails, the others continue; but if
// the API server can't be reached, or the context ended, no more begin. A panic of do becomes a panic of the caller:
// in another goroutine it would end the process.
func Each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	if len(items) == 0 {
		return nil
	}
	var (
		group    sync.WaitGroup
		lock     sync.Mutex
		failures []error
		stop     bool
		panicked any
	)
	one := func(item T) {
		defer func() {
			if found := recover(); found != nil {
				lock.Lock()
				panicked, stop = found, true
				lock.Unlock()
			}
		}()
		err := ctx.Err()
		if err == nil {
			err = do(ctx, item)
		}
		if err != nil {
			lock.Lock()
			failures, stop = append(failures, err), stop || !IsAnswer(err)
			lock.Unlock()
		}
	}
	queue := make(chan T, len(items))
	for _, item := range items {
		queue <- item
	}
	close(queue)
	for range min(parallel, len(items)) {
		group.Go(func() {
			for item := range queue {
				lock.Lock()
				stopped := stop
				lock.Unlock()
				if stopped {
					return
				}
				one(item)
			}
		})
	}
	group.Wait()
	if panicked != nil {
		panic(panicked)
	}
	if len(failures) == 0 {
		return nil
	}
	return failures[0] // the others are mostly the same, and all are retried
}
