package calls

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// parallel is how many calls of one rollout are under way at a time, over one HTTP/2 connection.
const parallel = 12

// Each calls do for all items, several at a time, and returns when all calls have. A call that fails does not stop the
// others, unless the API server can't be asked at all: then no further one is begun, and none once the context has ended.
func Each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	if len(items) == 0 {
		return nil
	}
	var (
		group    sync.WaitGroup
		lock     sync.Mutex
		failures []error
		stop     bool
	)
	take := make(chan T, len(items))
	for _, item := range items {
		take <- item
	}
	close(take)
	for range min(parallel, len(items)) {
		group.Go(func() {
			for item := range take {
				lock.Lock()
				stopped := stop
				lock.Unlock()
				if stopped {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = do(ctx, item)
				}
				if err != nil {
					lock.Lock()
					failures, stop = append(failures, err), stop || !isAnswer(err)
					lock.Unlock()
				}
			}
		})
	}
	group.Wait()
	if len(failures) == 0 {
		return nil
	}
	return failures[0] // the others most often say the same, and all are tried again
}

// isAnswer says whether an error was given by the API server, rather than by the way to it.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
