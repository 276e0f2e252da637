package fairqueue

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Options of a queue.
type Options[T comparable] struct {
	// Name is the controller's, for client-go's metrics; empty: there are none.
	Name string
	// Cluster returns the cluster of an object, when it becomes ready.
	Cluster func(T) Cluster
	Limits  Limits
	// RateLimiter says how long AddRateLimited waits.
	RateLimiter workqueue.TypedRateLimiter[T]
	// Metrics of lanes; nil: none are registered.
	Metrics *Metrics
	// Logger reports which clusters become slow, and quick again.
	Logger logr.Logger
	// Clock is for tests; nil: the real one.
	Clock clock.WithTicker
}

// Queue hands out objects, fairly between clusters. It implements
// workqueue.TypedRateLimitingInterface.
type Queue[T comparable] struct {
	options Options[T]

	mutex sync.Mutex
	// free is signalled when an object may have become available.
	free  *sync.Cond
	lanes *lanes[T]
	// sets are client-go's queue over the lanes: it knows and counts ready objects and objects in work. Its Get is
	// called only after choose found an object, so it never waits.
	sets *workqueue.Typed[T]
	// pending are the objects that are ready, or will be when their reconciliation ends.
	pending sets.Set[T]
	// added are those of them that a caller added, not a timer.
	added   sets.Set[T]
	waiting *waiting[T]
	runs    map[T]*run[T]
	// retries counts waits in client-go's metric; it has no other use.
	retries workqueue.TypedDelayingInterface[T]
	ended   bool
	// nextWake is when the timer fires next.
	nextWake time.Time

	// wake restarts the timer, stop ends it.
	wake, stop chan struct{}
	running    sync.WaitGroup
}

// run is one object in work.
type run[T comparable] struct {
	account *account[T]
	began   time.Time
	// added: a caller added the object.
	added bool
	// placed: it has a place in the slow lane, and time until the deadline.
	placed bool
	// overdue is why it has to end; nil if it need not.
	overdue *OverdueError
	// end ends its context; nil before Begin.
	end context.CancelCauseFunc
}

// New makes a queue, which runs until ShutDown.
func New[T comparable](options Options[T]) *Queue[T] {
	options.Limits = options.Limits.filled()
	options.Clock = cmp.Or[clock.WithTicker](options.Clock, clock.RealClock{})
	options.Metrics = cmp.Or(options.Metrics, NewMetrics(prometheus.NewRegistry()))
	q := &Queue[T]{
		options: options, lanes: newLanes(options.Limits, options.Cluster, options.Clock.Now), pending: sets.Set[T]{}, added: sets.Set[T]{},
		waiting: newWaiting[T](), runs: map[T]*run[T]{}, wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	q.free = sync.NewCond(&q.mutex)
	q.sets = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: options.Name, Clock: options.Clock, Queue: q.lanes})
	q.retries = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Name: options.Name, Clock: options.Clock, Queue: workqueue.NewTyped[T](),
	})
	q.running.Go(q.runTimer)
	return q
}

// Add makes an object ready.
func (q *Queue[T]) Add(item T) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if !q.ended {
		q.added.Insert(item)
	}
	q.add(item)
}

// add needs the mutex, as all private methods do.
func (q *Queue[T]) add(item T) {
	if q.ended {
		return
	}
	q.waiting.drop(item)
	q.pending.Insert(item)
	q.sets.Add(item)
	q.updateMetrics()
	q.free.Signal()
}

// AddAfter makes an object ready after a wait, unless it becomes ready earlier for another reason.
func (q *Queue[T]) AddAfter(item T, wait time.Duration) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	switch {
	case q.ended:
	case wait <= 0:
		q.add(item)
	case q.pending.Has(item):
	default:
		q.retries.AddAfter(*new(T), 0) // this queue only counts
		at := q.options.Clock.Now().Add(wait)
		q.waiting.add(item, at)
		q.wakeBy(at)
	}
}

// AddRateLimited makes an object ready after a wait that grows with its failures in a row.
func (q *Queue[T]) AddRateLimited(item T) { q.AddAfter(item, q.options.RateLimiter.When(item)) }

// Forget sets the count of an object's failures to 0.
func (q *Queue[T]) Forget(item T) { q.options.RateLimiter.Forget(item) }

// NumRequeues is the number of an object's failures in a row.
func (q *Queue[T]) NumRequeues(item T) int { return q.options.RateLimiter.NumRequeues(item) }

// Len is how many objects are ready.
func (q *Queue[T]) Len() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.lanes.Len()
}

// Get waits for an object, until the queue ends.
func (q *Queue[T]) Get() (item T, shutdown bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for !q.ended {
		if item, ok := q.pop(); ok {
			return item, false
		}
		q.free.Wait()
	}
	return item, true
}

func (q *Queue[T]) pop() (item T, ok bool) {
	if !q.lanes.choose() {
		return item, false
	}
	item, _ = q.sets.Get()
	q.pending.Delete(item)
	a := q.lanes.next
	q.options.Metrics.waited(a.lane(), q.lanes.waited(item))
	one := &run[T]{account: a, began: q.options.Clock.Now(), added: q.added.Has(item)}
	q.added.Delete(item)
	if a.lane() == laneSlow {
		one.placed = q.lanes.place(a)
	}
	q.lanes.count(a, 1)
	q.runs[item] = one
	q.updateMetrics()
	q.wakeBy(one.began.Add(q.options.Limits.SlowAfter))
	return item, true
}

// Begin returns the context of the reconciliation of an object that Get returned. It ends with an OverdueError as its
// cause when the reconciliation takes too long. Call end when the reconciliation ended before the rule was evaluated.
func (q *Queue[T]) Begin(ctx context.Context, item T) (within context.Context, end func()) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	within, cancel := context.WithCancelCause(ctx)
	if one, known := q.runs[item]; known {
		one.end = cancel
		if one.overdue != nil {
			cancel(one.overdue)
		}
	}
	return within, func() { cancel(context.Canceled) }
}

// IsDue says of an object in work that a timer made it ready, and no caller added it.
func (q *Queue[T]) IsDue(item T) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	one, known := q.runs[item]
	return known && !one.added
}

// Done says that the reconciliation of an object is over.
func (q *Queue[T]) Done(item T) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	one, known := q.runs[item]
	if !known {
		return
	}
	delete(q.runs, item)
	a, now := one.account, q.options.Clock.Now()
	q.lanes.count(a, -1)
	slow := now.Sub(one.began) >= q.options.Limits.SlowAfter
	if one.placed {
		q.lanes.yield(a)
	}
	if slow || one.placed { // a quick reconciliation next to a slow one of the same cluster proves nothing
		q.recordRun(a, slow, now)
	}
	q.sets.Done(item)
	q.lanes.dropIdle(a, now)
	q.updateMetrics()
	q.free.Broadcast() // any waiting worker may be able to continue now
}

// recordRun moves a cluster between the lanes by the result of a reconciliation.
func (q *Queue[T]) recordRun(a *account[T], slow bool, now time.Time) {
	if !q.lanes.recordResult(a, slow, now) {
		return
	}
	logger := q.options.Logger.WithValues("namespace", a.cluster.Tenant)
	if a.cluster.Name != "" {
		logger = logger.WithValues("cluster", a.cluster.Name)
	}
	if slow {
		logger.Info("a cluster is slow: its installations take turns, one at a time, in the lane of slow clusters", "quickPassesOwed", a.owed)
	} else {
		logger.Info("a cluster is fast again")
	}
	q.free.Broadcast()
}

// ShutDown ends the queue: Get returns no objects any more, and running reconciliations continue.
func (q *Queue[T]) ShutDown() {
	q.mutex.Lock()
	again := q.ended
	q.ended = true
	q.free.Broadcast()
	q.mutex.Unlock()
	if again {
		return
	}
	close(q.stop)
	q.running.Wait()
	q.sets.ShutDown()
	q.retries.ShutDown()
}

// ShutDownWithDrain is ShutDown: controllers don't use its other features.
func (q *Queue[T]) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown says whether the queue has ended.
func (q *Queue[T]) ShuttingDown() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.ended
}

// runTimer makes objects ready whose time has come, and ends reconciliations that take too long.
func (q *Queue[T]) runTimer() {
	timer := q.options.Clock.NewTimer(remembered)
	defer timer.Stop()
	for {
		// The next check sees a time that has passed meanwhile. The channel is emptied, since a clock of tests waits for a
		// reader.
		timer.Stop()
		select {
		case <-timer.C():
		default:
		}
		q.mutex.Lock()
		timer.Reset(q.processDue())
		q.mutex.Unlock()
		select {
		case <-q.stop:
			return
		case <-q.wake:
		case <-timer.C():
		}
	}
}

// processDue does what is due by now, and returns the time until the next check.
func (q *Queue[T]) processDue() time.Duration {
	if q.ended {
		return remembered
	}
	now := q.options.Clock.Now()
	for {
		item, at, ok := q.waiting.first()
		if !ok || at.After(now) {
			break
		}
		q.add(item)
	}
	next := remembered
	if _, at, ok := q.waiting.first(); ok {
		next = min(next, at.Sub(now))
	}
	for _, one := range q.runs {
		if left := q.checkDeadline(one, now); left > 0 {
			next = min(next, left)
		}
	}
	next = max(next, time.Millisecond)
	q.nextWake = now.Add(next)
	q.updateMetrics()
	return next
}

// checkDeadline ends a reconciliation that takes too long, and returns the time that it has left; 0: none.
func (q *Queue[T]) checkDeadline(one *run[T], now time.Time) (left time.Duration) {
	age, limits := now.Sub(one.began), q.options.Limits
	if one.overdue != nil {
		return 0
	}
	if age < limits.SlowAfter {
		return limits.SlowAfter - age
	}
	if !one.placed {
		q.recordRun(one.account, true, now)
		one.placed = q.lanes.place(one.account)
	}
	had, limit := limits.Deadline, limitDeadline
	if !one.placed {
		had, limit = limits.SlowAfter, limitLane
	}
	if age < had {
		return had - age
	}
	one.overdue = &OverdueError{After: had}
	if one.end != nil {
		one.end(one.overdue)
	}
	q.options.Metrics.wasOverdue(limit)
	return 0
}

// wakeBy makes the timer fire at that time or earlier.
func (q *Queue[T]) wakeBy(at time.Time) {
	if !at.Before(q.nextWake) {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue[T]) updateMetrics() {
	q.options.Metrics.show(q.lanes.ready, q.lanes.running, q.lanes.slow)
}
