package fairqueue

import (
	"container/list"
	"time"
)

// lane is where a cluster takes turns.
type lane string

// Lanes, as metrics name them.
const (
	laneNormal lane = "normal"
	laneSlow   lane = "slow"
)

// account is what is known of one cluster.
type account[T comparable] struct {
	cluster string
	// ready are its objects that nobody has taken, in the order in which they became ready.
	ready []T
	// running and placed count its passes, and those with a place in the slow lane.
	running, placed int
	// owed is how many quick passes make it well again: 0, it is well. penalty is what it owed the last time it became slow.
	owed, penalty int
	// slowAt is when a pass was found slow the last time.
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

// isIdle says that nothing of the cluster is ready or in work.
func (a *account[T]) isIdle() bool { return len(a.ready) == 0 && a.running == 0 }

// isForgiven says that the last slow pass is so long ago that it means nothing any more.
func (a *account[T]) isForgiven(now time.Time) bool { return now.Sub(a.slowAt) >= remembered }

// lanes are the clusters' turns: the storage of a client-go queue. Its Queue's mutex guards it.
type lanes[T comparable] struct {
	limits   Limits
	of       func(T) string
	accounts map[string]*account[T]
	rings    map[lane]*list.List
	// last is the lane that had the last turn; placed counts places taken in the slow lane.
	last   lane
	placed int
	// ready counts objects by lane, running passes; slow counts the clusters of the slow lane.
	ready, running map[lane]int
	slow           int
	// next is whom choose chose.
	next *account[T]
}

func newLanes[T comparable](limits Limits, of func(T) string) *lanes[T] {
	return &lanes[T]{
		limits: limits, of: of, accounts: map[string]*account[T]{},
		rings: map[lane]*list.List{laneNormal: list.New(), laneSlow: list.New()}, last: laneSlow,
		ready: map[lane]int{}, running: map[lane]int{},
	}
}

// Touch implements workqueue.Queue: what is added again keeps its place.
func (l *lanes[T]) Touch(T) {}

func (l *lanes[T]) Len() int { return l.ready[laneNormal] + l.ready[laneSlow] }

func (l *lanes[T]) Push(item T) {
	a := l.account(item)
	a.ready = append(a.ready, item)
	l.ready[a.lane()]++
	if a.turn == nil {
		a.turn = l.rings[a.lane()].PushBack(a)
	}
}

// Pop implements workqueue.Queue: it takes the object whose turn it is, which choose has found.
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

// found takes over what a pass showed of its cluster, and says whether that changed the lane.
func (l *lanes[T]) found(a *account[T], slow bool, now time.Time) (changed bool) {
	before := a.lane()
	owed := a.owed
	switch {
	case slow && before == laneSlow:
		owed, a.slowAt = a.penalty, now
	case slow:
		if a.isForgiven(now) {
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
	if slow {
		l.slow++
		l.forget(now)
	} else {
		l.slow--
	}
	return true
}

// move takes a cluster to the other lane: what it owes says which.
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

// forget drops the accounts that are kept for former slow passes only, once those mean nothing.
func (l *lanes[T]) forget(now time.Time) {
	for _, a := range l.accounts {
		l.rest(a, now)
	}
}

// rest drops the account of a cluster that has nothing left to do, if nothing is held against it.
func (l *lanes[T]) rest(a *account[T], now time.Time) {
	if !a.isIdle() || !a.isForgiven(now) {
		return
	}
	if a.owed > 0 {
		l.slow--
	}
	delete(l.accounts, a.cluster)
}
