package fairqueue

import (
	"container/list"
	"time"
)

// lane is a group of clusters that take turns.
type lane string

// Lanes, as metrics name them.
const (
	laneNormal lane = "normal"
	laneSlow   lane = "slow"
)

// account is the state of one cluster.
type account[T comparable] struct {
	cluster string
	// ready are its objects that no worker has, in the order in which they became ready.
	ready []T
	// running counts its passes, placed those that have a place in the slow lane.
	running, placed int
	// owed is how many quick passes bring the cluster back to the normal lane; 0: it is in it.
	// penalty is what it owed when it last became slow.
	owed, penalty int
	// slowAt is when the last slow pass was found.
	slowAt time.Time
	// turn is its place in the ring of its lane; nil while nothing is ready.
	turn *list.Element
}

func (a *account[T]) lane() lane {
	if a.owed > 0 {
		return laneSlow
	}
	return laneNormal
}

// hasRecovered says whether the last slow pass is too long ago to count.
func (a *account[T]) hasRecovered(now time.Time) bool { return now.Sub(a.slowAt) >= remembered }

// lanes order the clusters: the storage of a client-go queue. The Queue's mutex guards it.
type lanes[T comparable] struct {
	limits   Limits
	of       func(T) string
	accounts map[string]*account[T]
	rings    map[lane]*list.List
	// last is the lane that had the last turn; placed counts the places of the slow lane in use.
	last   lane
	placed int
	// ready counts objects by lane, running counts passes; slow counts slow clusters.
	ready, running map[lane]int
	slow           int
	// next is the account that choose found.
	next *account[T]
	// since is when objects that no worker has became ready.
	since map[T]time.Time
	now   func() time.Time
}

func newLanes[T comparable](limits Limits, of func(T) string, now func() time.Time) *lanes[T] {
	return &lanes[T]{
		limits: limits, of: of, accounts: map[string]*account[T]{},
		rings: map[lane]*list.List{laneNormal: list.New(), laneSlow: list.New()}, last: laneSlow,
		ready: map[lane]int{}, running: map[lane]int{}, since: map[T]time.Time{}, now: now,
	}
}

// Touch implements workqueue.Queue: an object that is added again keeps its place.
func (l *lanes[T]) Touch(T) {}

func (l *lanes[T]) Len() int { return l.ready[laneNormal] + l.ready[laneSlow] }

func (l *lanes[T]) Push(item T) {
	a := l.account(item)
	a.ready = append(a.ready, item)
	l.since[item] = l.now()
	l.ready[a.lane()]++
	if a.turn == nil {
		a.turn = l.rings[a.lane()].PushBack(a)
	}
}

// Pop implements workqueue.Queue: it removes the next object of the cluster that choose found.
func (l *lanes[T]) Pop() T {
	a := l.next
	item := a.ready[0]
	a.ready = a.ready[1:]
	l.ready[a.lane()]--
	l.last = a.lane()
	ring := l.rings[a.lane()]
	if len(a.ready) > 0 {
		ring.MoveToBack(a.turn)
		return item
	}
	ring.Remove(a.turn)
	a.ready, a.turn = nil, nil
	return item
}

// choose finds the cluster whose turn it is. The lanes take turns too, so that neither starves.
func (l *lanes[T]) choose() bool {
	order := []lane{laneNormal, laneSlow}
	if l.last == laneNormal {
		order = []lane{laneSlow, laneNormal}
	}
	for _, which := range order {
		for turn := l.rings[which].Front(); turn != nil; turn = turn.Next() {
			if l.next = turn.Value.(*account[T]); l.mayRun(l.next) {
				return true
			}
			if which == laneSlow && l.placed >= l.limits.SlowLane {
				break
			}
		}
	}
	return false
}

// waited gives how long an object that was popped had waited, once.
func (l *lanes[T]) waited(item T) time.Duration {
	since := l.since[item]
	delete(l.since, item)
	return l.now().Sub(since)
}

func (l *lanes[T]) mayRun(a *account[T]) bool {
	if a.lane() == laneSlow {
		return a.running == 0 && l.placed < l.limits.SlowLane
	}
	return a.running < l.limits.Share
}

func (l *lanes[T]) account(item T) *account[T] {
	cluster := l.of(item)
	a, known := l.accounts[cluster]
	if !known {
		a = &account[T]{cluster: cluster}
		l.accounts[cluster] = a
	}
	return a
}

// place gives a pass of the cluster a place in the slow lane, if one is free.
func (l *lanes[T]) place(a *account[T]) bool {
	if a.placed > 0 || l.placed >= l.limits.SlowLane {
		return false
	}
	a.placed++
	l.placed++
	return true
}

// recordResult counts a pass as slow or quick, and says whether its cluster changed the lane.
func (l *lanes[T]) recordResult(a *account[T], slow bool, now time.Time) (changed bool) {
	before := a.lane()
	owed := a.owed
	switch {
	case slow && before == laneSlow:
		owed, a.slowAt = a.penalty, now
	case slow:
		if a.hasRecovered(now) {
			a.penalty = 0
		}
		a.penalty = min(max(2*a.penalty, 1), mostOwed)
		owed, a.slowAt = a.penalty, now
	case before == laneSlow:
		owed--
	}
	if (owed > 0) == (a.owed > 0) {
		a.owed = owed
		return false
	}
	l.move(a, owed)
	if !slow {
		l.slow--
		return true
	}
	l.slow++
	for _, other := range l.accounts {
		l.dropIdle(other, now)
	}
	return true
}

// move puts a cluster into the other lane, by what it owes.
func (l *lanes[T]) move(a *account[T], owed int) {
	l.ready[a.lane()] -= len(a.ready)
	l.running[a.lane()] -= a.running
	if a.turn != nil {
		l.rings[a.lane()].Remove(a.turn)
		a.turn = nil
	}
	a.owed = owed
	l.ready[a.lane()] += len(a.ready)
	l.running[a.lane()] += a.running
	if len(a.ready) > 0 {
		a.turn = l.rings[a.lane()].PushBack(a)
	}
}

// dropIdle drops the account of a cluster without work whose slow passes no longer count.
func (l *lanes[T]) dropIdle(a *account[T], now time.Time) {
	if len(a.ready) > 0 || a.running > 0 || !a.hasRecovered(now) {
		return
	}
	if a.owed > 0 {
		l.slow--
	}
	delete(l.accounts, a.cluster)
}
