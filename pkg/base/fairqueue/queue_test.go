package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-addons/trellis/test/long"
)

// bench is a queue whose clock the test moves, and workers that never wait.
type bench struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	queue *Queue[string]
	// measured has the queue's metrics.
	measured *prometheus.Registry
}

// newBench makes a queue of objects that are called cluster/name or, of tenants with several clusters, tenant:cluster/name.
func newBench(t *testing.T, limits Limits) *bench {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	measured := prometheus.NewRegistry()
	b := &bench{t: t, clock: clock, measured: measured, queue: New(Options[string]{
		Cluster: clusterOf, Limits: limits, Clock: clock, Logger: logr.Discard(), Metrics: NewMetrics(measured),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
	})}
	t.Cleanup(b.queue.ShutDown)
	return b
}

func clusterOf(item string) Cluster {
	where, _, _ := strings.Cut(item, "/")
	tenant, name, _ := strings.Cut(where, ":")
	return Cluster{Tenant: tenant, Name: name}
}

// take is Get where something may be taken, and "" otherwise.
func (b *bench) take() string {
	b.queue.mutex.Lock()
	defer b.queue.mutex.Unlock()
	if len(b.queue.runs) == b.queue.options.Limits.Workers {
		return "" // no worker is left
	}
	item, _ := b.queue.pop()
	return item
}

// begin is take with the context of the pass.
func (b *bench) begin() (string, context.Context) {
	item := b.take()
	ctx, end := b.queue.Begin(b.t.Context(), item)
	b.t.Cleanup(end)
	return item, ctx
}

// advance lets time go by.
func (b *bench) advance(time time.Duration) {
	b.clock.Step(time)
	b.queue.mutex.Lock()
	defer b.queue.mutex.Unlock()
	b.queue.processDue()
}

func (b *bench) add(cluster string, count int) {
	for i := range count {
		b.queue.Add(fmt.Sprintf("%s/%04d", cluster, i))
	}
}

// taken are the clusters of all that may be taken now, in order.
func (b *bench) taken() string {
	var order []string
	for item := b.take(); item != ""; item = b.take() {
		where, _, _ := strings.Cut(item, "/")
		order = append(order, where)
	}
	return strings.Join(order, " ")
}

// AC75: Four hundred installations of one tenant do not hold up the one of another.
func TestAClusterThatComesAgainIsTakenNext(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	b.add("flood", 400)
	if got := b.taken(); got != strings.Repeat(" flood", 4)[1:] {
		t.Fatalf("one cluster got %q, and its share is 4 of 10 workers", got)
	}
	b.queue.Add("new/1")
	if got := b.take(); got != "new/1" {
		t.Fatalf("took %q, want the new cluster's", got)
	}
}

func TestClustersTakeTurnsAndObjectsKeepTheirOrder(t *testing.T) {
	b := newBench(t, Limits{Workers: 1})
	b.add("a", 3)
	b.add("b", 2)
	b.add("c", 1)
	var order []string
	for item := b.take(); item != ""; item = b.take() {
		order = append(order, item)
		b.queue.Done(item)
	}
	if got, want := strings.Join(order, " "), "a/0000 b/0000 c/0000 a/0001 b/0001 a/0002"; got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
}

// Every worker is held by clusters that never answer.
func TestNoMoreRunsTakeLongThanTheSlowLaneHolds(t *testing.T) {
	b := newBench(t, Limits{Workers: 10, SlowAfter: 10 * time.Second, Deadline: time.Minute})
	for _, cluster := range []string{"x", "y", "z"} {
		b.add(cluster, 12)
	}
	runs := map[string]context.Context{}
	for range 10 {
		item, run := b.begin()
		runs[item] = run //nolint:fatcontext // each pass has one of its own
	}
	b.add("victim", 1)
	if got := b.take(); got != "" {
		t.Fatalf("took %q without a worker", got)
	}
	b.advance(10 * time.Second)
	var ended []string
	for item, ctx := range runs {
		var overdue *OverdueError
		if errors.As(context.Cause(ctx), &overdue) && overdue.After == 10*time.Second {
			ended = append(ended, item)
		}
	}
	if len(ended) != 8 {
		t.Fatalf("%d of 10 passes were ended, want all but the two that the slow lane holds: %q", len(ended), ended)
	}
	for _, item := range ended {
		b.queue.Done(item)
	}
	if got := b.taken(); got != "victim" {
		t.Errorf("took %q, want the victim's and nothing of the slow clusters", got)
	}
	b.advance(50 * time.Second)
	for item, ctx := range runs {
		if ctx.Err() == nil {
			t.Errorf("the pass over %q goes on after its deadline", item)
		}
	}
}

func TestASlowClusterIsWellAgainAfterAsManyQuickRunsAsItOwes(t *testing.T) {
	b := newBench(t, Limits{Workers: 10, SlowAfter: 10 * time.Second})
	for relapse, owed := range []int{1, 2, 4, 8, 16, 16} {
		b.queue.Add("c/slow")
		item := b.take()
		b.advance(10 * time.Second)
		b.queue.Done(item)
		for run := range owed {
			b.add("c", 4)
			if got := b.taken(); got != "c" {
				t.Fatalf("relapse %d, quick pass %d: took %q, want one at a time", relapse, run, got)
			}
			b.finish()
		}
		b.add("c", 4)
		if got := b.taken(); got != strings.Repeat(" c", 4)[1:] {
			t.Fatalf("relapse %d: took %q after %d quick passes, want its share", relapse, got, owed)
		}
		b.finish()
	}
	b.advance(2 * remembered)
	b.queue.Add("c/slow")
	b.queue.Done(b.take())
	if len(b.queue.lanes.accounts) > 0 {
		t.Errorf("%d accounts are kept long after the last slow pass", len(b.queue.lanes.accounts))
	}
}

func TestAQuickRunDuringTheSlowOneShowsNothing(t *testing.T) {
	b := newBench(t, Limits{Workers: 10, SlowAfter: 10 * time.Second})
	b.queue.Add("c/slow")
	b.take()
	b.advance(9 * time.Second)
	b.queue.Add("c/quick")
	b.take()
	b.advance(time.Second)
	b.queue.Done("c/quick")
	b.add("c", 4)
	if got := b.taken(); got != "" {
		t.Errorf("took %q of a cluster whose slow pass is under way", got)
	}
}

// finish ends the passes under way, and empties the queue without a pass that would show something.
func (b *bench) finish() {
	b.t.Helper()
	for item := range b.queue.runs {
		b.queue.Done(item)
	}
	for b.queue.Len() > 0 {
		b.queue.mutex.Lock()
		found := b.queue.lanes.choose()
		if found {
			b.queue.pending.Delete(func() string { item, _ := b.queue.sets.Get(); b.queue.sets.Done(item); return item }())
		}
		b.queue.mutex.Unlock()
		if !found {
			b.t.Fatal("something is ready and nobody can take it")
		}
	}
}

func TestAnObjectThatIsAddedInWorkIsTakenAgainAfterIt(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	b.queue.Add("a/1")
	item := b.take()
	b.queue.Add("a/1")
	if got := b.take(); got != "" {
		t.Fatalf("took %q, which is in work", got)
	}
	b.queue.AddAfter("a/1", time.Minute) // it is asked for now already
	b.queue.Done(item)
	if got := b.take(); got != "a/1" {
		t.Fatalf("took %q, want what was added in work", got)
	}
	b.queue.Done("a/1")
	b.advance(2 * time.Minute)
	if got := b.take(); got != "" {
		t.Errorf("took %q once more", got)
	}
}

func TestAnObjectWaitsOnceForTheEarliestTime(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	b.queue.AddAfter("a/1", time.Minute)
	b.queue.AddAfter("a/1", time.Second)
	b.queue.AddAfter("a/1", time.Hour)
	b.advance(time.Second)
	if got := b.take(); got != "a/1" {
		t.Fatalf("took %q, want what has waited for its second", got)
	}
	b.queue.Done("a/1")
	b.queue.AddAfter("a/1", time.Minute)
	b.queue.Add("a/1")
	b.queue.Done(b.take())
	b.advance(2 * time.Hour)
	if got := b.take(); got != "" {
		t.Errorf("took %q, whose wait ended when it was added", got)
	}
}

func TestGetWaitsForWhatMayBeTakenAndEndsWithTheQueue(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	taken := make(chan string)
	go func() {
		defer close(taken)
		for {
			item, ended := b.queue.Get()
			if ended {
				return
			}
			taken <- item
		}
	}()
	b.queue.AddRateLimited("a/1")
	b.clock.Step(time.Second)
	b.queue.Add("b/1")
	got := map[string]bool{<-taken: true, <-taken: true}
	if !got["a/1"] || !got["b/1"] {
		t.Errorf("took %v", got)
	}
	b.queue.ShutDown()
	if item, more := <-taken; more {
		t.Errorf("took %q from a queue that has ended", item)
	}
	b.queue.Add("c/1")
	if !b.queue.ShuttingDown() || b.queue.Len() != 0 {
		t.Error("a queue that has ended takes something in")
	}
}

// TestTheQueueKeepsItsPromisesInAnyOrder adds, takes, ends and lets time go by at random.
func TestTheQueueKeepsItsPromisesInAnyOrder(t *testing.T) {
	long.Heavy(t)
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newRandomWalk(t, seed).run(3000) })
	}
}

// randomWalk knows what the queue promised.
type randomWalk struct {
	*bench
	random *rand.Rand
	limits Limits
	// wanted is what has to be taken at some time, with the number of turns since then; due is what
	// waits.
	wanted  map[string]int
	due     map[string]time.Time
	working map[string]context.Context
	began   map[string]time.Time
	fifo    map[Cluster][]string
	// clusters are six, in every second walk some of one tenant.
	clusters []string
}

func newRandomWalk(t *testing.T, seed uint64) *randomWalk {
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // no secret depends on it
	limits := Limits{Workers: 1 + random.IntN(12), SlowAfter: 10 * time.Second, Deadline: time.Minute}
	clusters := []string{"0", "1", "2", "3", "4", "5"}
	if seed%2 == 1 {
		clusters = []string{"0", "1", "2:a", "2:b", "2:c", "3:a"}
	}
	return &randomWalk{
		clusters: clusters,
		bench:    newBench(t, limits), random: random, limits: limits.filled(),
		wanted: map[string]int{}, due: map[string]time.Time{}, working: map[string]context.Context{}, began: map[string]time.Time{},
		fifo: map[Cluster][]string{},
	}
}

func (w *randomWalk) run(steps int) {
	for range steps {
		item := fmt.Sprintf("%s/%d", w.clusters[w.random.IntN(len(w.clusters))], w.random.IntN(20))
		switch w.random.IntN(10) {
		case 0, 1, 2:
			w.want(item)
			w.queue.Add(item)
		case 3:
			w.wait(item, time.Duration(w.random.IntN(90))*time.Second)
		case 4, 5, 6:
			w.takeOne()
		case 7, 8:
			w.endOne()
		default:
			w.advance(time.Duration(w.random.IntN(4000)) * time.Millisecond)
			w.endOverdue()
		}
		w.check()
		if w.t.Failed() {
			return
		}
	}
	w.drain()
}

// want says that an object has to be taken; what is in work has its place behind the others once it
// is out of it.
func (w *randomWalk) want(item string) {
	delete(w.due, item)
	if _, already := w.wanted[item]; already {
		return
	}
	w.wanted[item] = 0
	if _, busy := w.working[item]; !busy {
		w.fifo[clusterOf(item)] = append(w.fifo[clusterOf(item)], item)
	}
}

func (w *randomWalk) wait(item string, wait time.Duration) {
	w.queue.AddAfter(item, wait)
	at := w.clock.Now().Add(wait)
	_, wanted := w.wanted[item]
	before, waits := w.due[item]
	switch {
	case wanted:
	case wait == 0:
		w.want(item)
	case !waits || at.Before(before):
		w.due[item] = at
	}
}

// advance lets time go by second by second, so that what becomes due does so in a known order.
func (w *randomWalk) advance(much time.Duration) {
	for ; much > 0; much -= time.Second {
		w.bench.advance(min(much, time.Second))
		w.queue.mutex.Lock()
		for cluster, a := range w.queue.lanes.accounts {
			w.fifo[cluster] = append([]string{}, a.ready...) // which of those due in the same second came first is the queue's to say
		}
		w.queue.mutex.Unlock()
		for item, at := range w.due {
			if !at.After(w.clock.Now()) {
				delete(w.due, item)
				w.wanted[item] = 0
			}
		}
	}
}

func (w *randomWalk) takeOne() {
	item, run := w.begin()
	if item == "" {
		return
	}
	if _, busy := w.working[item]; busy {
		w.t.Fatalf("%q is taken while it is in work", item)
	}
	if _, wanted := w.wanted[item]; !wanted {
		w.t.Fatalf("%q is taken, and nobody asked for it", item)
	}
	line := w.fifo[clusterOf(item)]
	if line[0] != item {
		w.t.Fatalf("%q is taken before %q, which was there first", item, line[0])
	}
	w.fifo[clusterOf(item)] = line[1:]
	delete(w.wanted, item)
	w.working[item], w.began[item] = run, w.clock.Now() //nolint:fatcontext // each pass has one of its own
	for other := range w.wanted {
		w.wanted[other]++
	}
}

func (w *randomWalk) endOne() {
	for item := range w.working {
		w.end(item)
		return
	}
}

// endOverdue ends what was asked to end: half of the clusters take their time without that, up to
// the deadline.
func (w *randomWalk) endOverdue() {
	for item, ctx := range w.working {
		if ctx.Err() != nil {
			w.end(item)
		}
	}
}

func (w *randomWalk) end(item string) {
	w.queue.Done(item)
	delete(w.working, item)
	delete(w.began, item)
	if _, again := w.wanted[item]; again {
		w.fifo[clusterOf(item)] = append(w.fifo[clusterOf(item)], item)
	}
}

func (w *randomWalk) check() {
	held, ofTenant := map[Cluster]int{}, map[string]int{}
	old := 0
	for item, ctx := range w.working {
		held[clusterOf(item)]++
		ofTenant[clusterOf(item).Tenant]++
		age := w.clock.Now().Sub(w.began[item])
		if ctx.Err() == nil && age >= w.limits.SlowAfter {
			old++
		}
		if ctx.Err() == nil && age >= w.limits.Deadline {
			w.t.Errorf("the pass over %q goes on for %s", item, age)
		}
	}
	for cluster, count := range held {
		if count > w.limits.shareOf(cluster) {
			w.t.Errorf("cluster %v holds %d workers, its share is %d", cluster, count, w.limits.shareOf(cluster))
		}
	}
	for tenant, count := range ofTenant {
		if count > w.limits.Share+1 {
			w.t.Errorf("tenant %q holds %d workers, its share is %d, and a place in the lane", tenant, count, w.limits.Share)
		}
	}
	if old > w.limits.SlowLane {
		w.t.Errorf("%d passes are older than %s, the lane holds %d", old, w.limits.SlowAfter, w.limits.SlowLane)
	}
	for item, turns := range w.wanted {
		// 6 clusters with 20 objects: even one a turn, each comes by. Slow clusters take turns with
		// all others.
		if turns > 6*20*2*w.limits.Workers {
			w.t.Errorf("%q was passed over %d times", item, turns)
		}
	}
	if kept := len(w.queue.lanes.accounts); kept > 6 {
		w.t.Errorf("%d accounts for 6 clusters", kept)
	}
}

// drain takes what is left: nothing may be lost, and nothing kept.
func (w *randomWalk) drain() {
	w.advance(2 * time.Minute)
	for len(w.wanted) > 0 || len(w.working) > 0 {
		before := len(w.wanted) + len(w.working)
		w.takeOne()
		w.endOne()
		if len(w.wanted)+len(w.working) == before && w.queue.Len() == 0 {
			w.t.Fatalf("lost: %v", w.wanted)
		}
	}
	if kept := len(w.queue.lanes.since); kept > 0 {
		w.t.Errorf("%d waits are kept", kept)
	}
	if len(w.queue.runs)+w.queue.pending.Len()+w.queue.waiting.Len()+len(w.queue.waiting.byItem)+w.queue.Len() > 0 {
		w.t.Error("something is kept of what is done")
	}
}

// TestWaitsAreMeasuredByLane: red when a wait begins before an object is ready, when it has the time of the pass before in it, or when what was
// measured is kept.
func TestWaitsAreMeasuredByLane(t *testing.T) {
	b := newBench(t, Limits{Workers: 1})
	b.queue.AddAfter("a/1", time.Second)
	b.advance(time.Second) // is no wait for a worker
	b.advance(3 * time.Second)
	item := b.take()
	b.queue.Add(item)
	b.advance(time.Second) // of the pass
	b.queue.Done(item)
	b.advance(2 * time.Second)
	b.queue.Done(b.take())
	families, err := b.measured.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lanes := 0
	for _, family := range families {
		if family.GetName() != "trellis_queue_wait_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			lanes++
			lane, got := metric.GetLabel()[0].GetValue(), metric.GetHistogram()
			want := map[string][2]float64{"normal": {2, 5}, "slow": {0, 0}}[lane]
			if float64(got.GetSampleCount()) != want[0] || got.GetSampleSum() != want[1] {
				t.Errorf("lane %s: %d waits of %g s, want %v", lane, got.GetSampleCount(), got.GetSampleSum(), want)
			}
		}
	}
	if lanes != 2 {
		t.Errorf("there are waits of %d lanes, want 2", lanes)
	}
	if kept := len(b.queue.lanes.since); kept > 0 {
		t.Errorf("%d waits are kept", kept)
	}
}

// Red when what somebody asked for is taken for what came for its time, or the other way round.
func TestWhatIsDueIsReportedFromWhatWasAskedFor(t *testing.T) {
	b := newBench(t, Limits{Workers: 10})
	turn := func(why string, due bool) {
		t.Helper()
		item := b.take()
		if item != "a/1" || b.queue.IsDue(item) != due {
			t.Errorf("%s: took %q, due %t", why, item, b.queue.IsDue(item))
		}
		b.queue.Done(item)
	}
	b.queue.AddAfter("a/1", time.Second)
	b.advance(time.Second)
	turn("its time came", true)
	b.queue.Add("a/1")
	turn("it was added", false)
	b.queue.AddAfter("a/1", time.Second)
	b.queue.Add("a/1")
	turn("it was added before its time", false)
	b.queue.AddAfter("a/1", time.Second)
	b.advance(time.Second)
	b.queue.Add("a/1")
	turn("it was added when its time had come", false)
	b.queue.Add("a/1")
	b.take()
	b.queue.Add("a/1") // in work
	b.queue.Done("a/1")
	turn("it was added in work", false)
	if b.queue.IsDue("a/1") || b.queue.added.Len() > 0 {
		t.Error("something is kept of what is done")
	}
}
