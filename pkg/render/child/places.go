package child

import "slices"

// state is the present use of a place.
type state string

const (
	// vacant: there is no child.
	vacant state = "vacant"
	// idle: its child waits for a rendering.
	idle state = "idle"
	// working: a rendering has the place. It ends a child that does not fit, and starts another.
	working state = "working"
	// readying: a child for no tenant yet is being started, after the previous one has ended.
	readying state = "readying"
	// clearing: the pool is closed, and the waiting child is being ended.
	clearing state = "clearing"
)

// place is where one child at a time runs. While it is not idle, only its owner uses the child.
type place struct {
	state state
	// tenant uses the place while it is working.
	tenant string
	// child was started for this place and has not ended; nil: none.
	child *process
	// since is when the child began to wait; the smallest number has waited longest.
	since uint64
}

// ticket is a caller that waits for a place.
type ticket struct {
	tenant string
	// turn delivers the place; it is closed when the pool ends.
	turn chan *place
	// rank orders callers of different tenants: each of a tenant that waits has one more than its previous one.
	rank int
}

// places has a pool's whole state of its children and waiting callers: usually one place more than renderings run at
// a time. It has no processes, clocks or locks: the pool holds its mutex.
type places struct {
	all []*place
	// most is the maximum number of concurrent renderings. If there is one more place, it is for a child without a
	// tenant.
	most    int
	waiting []*ticket
	// rank is the highest of the callers that got a place.
	rank   int
	given  uint64
	closed bool
}

func newPlaces(children, beside int) *places {
	made := &places{most: children}
	for range children + beside {
		made.all = append(made.all, &place{state: vacant})
	}
	return made
}

// share is the maximum number of concurrent renderings of one tenant: never all.
func (p *places) share() int { return max(1, p.most-1) }

func (p *places) count(asked func(at *place) bool) int {
	found := 0
	for _, at := range p.all {
		if asked(at) {
			found++
		}
	}
	return found
}

// ask waits for a place.
func (p *places) ask(tenant string) *ticket {
	mine := &ticket{tenant: tenant, turn: make(chan *place, 1), rank: p.rank}
	for _, one := range p.waiting {
		if one.tenant == tenant {
			mine.rank = max(mine.rank, one.rank+1)
		}
	}
	p.waiting = append(p.waiting, mine)
	p.callUp()
	return mine
}

// withdraw ends a wait. It returns a place that was given in the same moment; the caller releases it.
func (p *places) withdraw(mine *ticket) *place {
	if at := slices.Index(p.waiting, mine); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return nil
	}
	return <-mine.turn
}

// callUp gives places to waiting callers.
func (p *places) callUp() {
	for !p.closed && p.count(func(at *place) bool { return at.state == working }) < p.most {
		next := p.next()
		if next < 0 {
			return
		}
		mine := p.waiting[next]
		p.waiting = slices.Delete(p.waiting, next, next+1)
		at := p.choose(mine.tenant)
		at.state, at.tenant = working, mine.tenant
		p.rank = max(p.rank, mine.rank)
		mine.turn <- at
	}
}

// next is the waiting caller that gets the next place; -1: none does. It is one of the tenant with the fewest
// renderings at work and, of equal ones, with the fewest places since it began to wait: a tenant with many callers does
// not delay others.
func (p *places) next() int {
	next, fewest := -1, p.share()
	for i, one := range p.waiting {
		theirs := p.count(func(at *place) bool { return at.state == working && at.tenant == one.tenant })
		if theirs < fewest || next >= 0 && theirs == fewest && one.rank < p.waiting[next].rank {
			next, fewest = i, theirs
		}
	}
	return next
}

// choose finds the best place for a tenant: with its own child, with a child of no tenant, without one, or with the
// child that has waited longest. There is one: not all places work, and one at most is readying.
func (p *places) choose(tenant string) *place {
	if at := p.longestIdle(func(child *process) bool { return child.bound && child.tenant == tenant }); at != nil {
		return at
	}
	if at := p.longestIdle(isNobodys); at != nil {
		return at
	}
	return p.freePlace()
}

func isNobodys(child *process) bool { return !child.bound }

// freePlace returns a place to start a child in: a vacant one, or the longest idle one; nil: none.
func (p *places) freePlace() *place {
	if at := slices.IndexFunc(p.all, func(at *place) bool { return at.state == vacant }); at >= 0 {
		return p.all[at]
	}
	return p.longestIdle(func(*process) bool { return true })
}

func (p *places) longestIdle(fits func(child *process) bool) *place {
	var found *place
	for _, at := range p.all {
		if at.state == idle && fits(at.child) && (found == nil || at.since < found.since) {
			found = at
		}
	}
	return found
}

// spare returns the place in which to start a child for no tenant; nil: there is such a child, or no place.
func (p *places) spare() *place {
	readied := p.count(func(at *place) bool { return at.state == readying || at.state == idle && isNobodys(at.child) })
	if p.closed || readied > 0 || len(p.all) == p.most {
		return nil
	}
	at := p.freePlace()
	if at != nil {
		at.state = readying
	}
	return at
}

// release returns a place. Its child waits for its tenant's next rendering. False: the pool is closed, so the child
// must be ended first.
func (p *places) release(at *place) bool {
	if at.child != nil && p.closed {
		at.state = clearing
		return false
	}
	at.state, at.tenant = vacant, ""
	if at.child != nil {
		p.given++
		at.state, at.since, at.child.waited = idle, p.given, true
	}
	p.callUp()
	return true
}

// close ends all waits. Waiting children become clearing, and must be ended; busy ones must be killed, and the owners
// of their places end them.
func (p *places) close() (ended, killed []*place) {
	p.closed = true
	for _, left := range p.waiting {
		close(left.turn)
	}
	p.waiting = nil
	for _, at := range p.all {
		switch {
		case at.state == idle:
			at.state = clearing
			ended = append(ended, at)
		case at.child != nil:
			killed = append(killed, at)
		}
	}
	return ended, killed
}
