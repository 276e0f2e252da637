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
	cluster Cluster
	tenant  *tenant
	// ready are its objects that no worker has, in the order in which they became ready.
	ready []T
	// running counts its reconciliations.
	running int
	// owed is how many quick reconciliations return the cluster to the normal lane; 0: it is in it. penalty is what it
	// owed when it last became slow.
	owed, penalty int
	// slowAt is when the last slow reconciliation was found.
	slowAt time.Time
	// turn is its place in its tenant's ring of its lane; nil while nothing is ready.
	turn *list.Element
}

func (a *account[T]) lane() lane {
	if a.owed > 0 {
		return laneSlow
	}
	return laneNormal
}

// hasRecovered says whether the last slow reconciliation is too long ago to count.
func (a *account[T]) hasRecovered(now time.Time) bool { return now.Sub(a.slowAt) >= remembered }

// tenant is the owner of one or several clusters.
type tenant struct {
	name string
	// clusters counts those with an account.
	clusters int
	// running counts reconciliations by lane, placed those that have a place in the slow lane.
	running map[lane]int
	placed  int
	// rings have the clusters with ready objects, turns the tenant's own places.
	rings map[lane]*list.List
	turns map[lane]*list.Element
}

func newRings() map[lane]*list.List {
	return map[lane]*list.List{laneNormal: list.New(), laneSlow: list.New()}
}

// lanes order tenants and their clusters: the storage of a client-go queue. The Queue's mutex guards
// it.
type lanes[T comparable] struct {
	limits   Limits
	of       func(T) Cluster
	accounts map[Cluster]*account[T]
	tenants  map[string]*tenant
	rings    map[lane]*list.List
	// last is the lane that had the last turn; placed counts the places of the slow lane in use.
	last   lane
	placed int
	// ready counts objects by lane, running counts reconciliations; slow counts slow clusters.
	ready, running map[lane]int
	slow           int
	// next is the account that choose found.
	next *account[T]
	// since is when objects became ready that no worker has.
	since map[T]time.Time
	now   func() time.Time
}

func newLanes[T comparable](limits Limits, of func(T) Cluster, now func() time.Time) *lanes[T] {
	return &lanes[T]{
		limits: limits, of: of, accounts: map[Cluster]*account[T]{}, tenants: map[string]*tenant{}, rings: newRings(), last: laneSlow,
		ready: map[lane]int{}, running: map[lane]int{}, since: map[T]time.Time{}, now: now,
	}
}

// Touch implements workqueue.Queue: an object that is added again keeps its place.
func (l *lanes[T]) Touch(T) {}

func (l *lanes[T]) Len() int { return l.ready[laneNormal] + l.ready[laneSlow] }

func (l *lanes[T]) Push(item T) {
	a := l.account(l.of(item))
	a.ready = append(a.ready, item)
	l.since[item] = l.now()
	l.ready[a.lane()]++
	l.queueUp(a)
}

// queueUp gives a cluster with ready objects a turn, unless it has one.
func (l *lanes[T]) queueUp(a *account[T]) {
	which, t := a.lane(), a.tenant
	if a.turn == nil {
		a.turn = t.rings[which].PushBack(a)
	}
	if t.turns[which] == nil {
		t.turns[which] = l.rings[which].PushBack(t)
	}
}

// leave removes a cluster's turn, if it has one.
func (l *lanes[T]) leave(a *account[T]) {
	which, t := a.lane(), a.tenant
	if a.turn == nil {
		return
	}
	t.rings[which].Remove(a.turn)
	a.turn = nil
	if t.rings[which].Len() == 0 {
		l.rings[which].Remove(t.turns[which])
		delete(t.turns, which)
	}
}

// Pop implements workqueue.Queue: it removes the next object of the cluster that choose found.
func (l *lanes[T]) Pop() T {
	a := l.next
	item := a.ready[0]
	a.ready = a.ready[1:]
	l.ready[a.lane()]--
	l.last = a.lane()
	if len(a.ready) > 0 {
		a.tenant.rings[a.lane()].MoveToBack(a.turn)
	} else {
		a.ready = nil
		l.leave(a)
	}
	if turn := a.tenant.turns[a.lane()]; turn != nil {
		l.rings[a.lane()].MoveToBack(turn)
	}
	return item
}

// choose finds the cluster whose turn it is, of the tenant whose turn it is. The lanes take turns
// too, so that neither starves.
func (l *lanes[T]) choose() bool {
	order := []lane{laneNormal, laneSlow}
	if l.last == laneNormal {
		order = []lane{laneSlow, laneNormal}
	}
	for _, which := range order {
		if which == laneSlow && l.placed >= l.limits.SlowLane {
			continue
		}
		for turn := l.rings[which].Front(); turn != nil; turn = turn.Next() {
			if l.chooseOf(turn.Value.(*tenant), which) {
				return true
			}
		}
	}
	return false
}

// chooseOf finds the cluster of a tenant whose turn it is.
func (l *lanes[T]) chooseOf(t *tenant, which lane) bool {
	unplaced := t.running[laneNormal] + t.running[laneSlow] - t.placed
	if which == laneSlow && t.running[laneSlow] > 0 || which == laneNormal && unplaced >= l.limits.Share {
		return false
	}
	for turn := t.rings[which].Front(); turn != nil; turn = turn.Next() {
		if l.next = turn.Value.(*account[T]); which == laneSlow || l.next.running < l.limits.shareOf(l.next.cluster) {
			return true
		}
	}
	return false
}

// waited returns how long an object that was popped had waited, once.
func (l *lanes[T]) waited(item T) time.Duration {
	since := l.since[item]
	delete(l.since, item)
	return l.now().Sub(since)
}

// count counts reconciliations of a cluster that begin, or end.
func (l *lanes[T]) count(a *account[T], runs int) {
	a.running += runs
	a.tenant.running[a.lane()] += runs
	l.running[a.lane()] += runs
}

func (l *lanes[T]) account(cluster Cluster) *account[T] {
	a, known := l.accounts[cluster]
	if known {
		return a
	}
	t, known := l.tenants[cluster.Tenant]
	if !known {
		t = &tenant{name: cluster.Tenant, running: map[lane]int{}, rings: newRings(), turns: map[lane]*list.Element{}}
		l.tenants[cluster.Tenant] = t
	}
	t.clusters++
	a = &account[T]{cluster: cluster, tenant: t}
	l.accounts[cluster] = a
	return a
}

// place gives a reconciliation of the cluster a place in the slow lane, if one is free and its tenant has none.
func (l *lanes[T]) place(a *account[T]) bool {
	if a.tenant.placed > 0 || l.placed >= l.limits.SlowLane {
		return false
	}
	a.tenant.placed++
	l.placed++
	return true
}

// yield returns the place.
func (l *lanes[T]) yield(a *account[T]) {
	a.tenant.placed--
	l.placed--
}

// recordResult counts a reconciliation as slow or quick, and says whether its cluster changed the lane.
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
	runs := a.running
	l.leave(a)
	l.ready[a.lane()] -= len(a.ready)
	l.count(a, -runs)
	a.owed = owed
	l.ready[a.lane()] += len(a.ready)
	l.count(a, runs)
	if len(a.ready) > 0 {
		l.queueUp(a)
	}
}

// dropIdle drops the account of a cluster without work whose slow reconciliations no longer count.
func (l *lanes[T]) dropIdle(a *account[T], now time.Time) {
	if len(a.ready) > 0 || a.running > 0 || !a.hasRecovered(now) {
		return
	}
	if a.owed > 0 {
		l.slow--
	}
	delete(l.accounts, a.cluster)
	if a.tenant.clusters--; a.tenant.clusters == 0 {
		delete(l.tenants, a.tenant.name)
	}
}
