package child

import "slices"

// state says what a place is for at the moment.
type state string

const (
	// vacant: there is no child.
	vacant state = "vacant"
	// idle: its child waits for a rendering.
	idle state = "idle"
	// working: a rendering has the place. It ends a child that does not fit, and starts another.
	working state = "working"
	// readying: a child for no tenant yet is being started, after the one before has ended.
	readying state = "readying"
	// clearing: the pool is closed, and the waiting child is being ended.
	clearing state = "clearing"
)

// place is where one child at a time lives. While it is not idle, only its owner uses the child.
type place struct {
	state state
	// tenant has the place while it is working.
	tenant string
	// child was started here and has not ended; nil: none.
	child *process
	// since is when the child began to wait; the smallest is the longest.
	since uint64
}

// ticket is a caller that waits for a place.
type ticket struct {
	tenant string
	// turn gives the place; it is closed where the pool ends.
	turn chan *place
}

// places are all that a pool knows of its children, and who waits: as a rule one place more than
// renderings run at a time. It has no processes, clocks or locks: the pool holds its mutex.
type places struct {
	all []*place
	// most is how many renderings run at a time. A child without a tenant has a place beside them, if there is one more.
	most    int
	waiting []*ticket
	given   uint64
	closed  bool
}

func newPlaces(children, beside int) *places {
	made := &places{most: children}
	for range children + beside {
		made.all = append(made.all, &place{state: vacant})
	}
	return made
}

// share is how many renderings one tenant may have at a time: never all.
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

// ask waits for a turn. The first comes first, except for tenants that have their share.
func (p *places) ask(tenant string) *ticket {
	mine := &ticket{tenant: tenant, turn: make(chan *place, 1)}
	p.waiting = append(p.waiting, mine)
	p.callUp()
	return mine
}

// withdraw ends a wait. A place that was given in the same moment is returned, to be released.
func (p *places) withdraw(mine *ticket) *place {
	if at := slices.Index(p.waiting, mine); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return nil
	}
	return <-mine.turn
}

// callUp gives places to those who wait.
func (p *places) callUp() {
	p.waiting = slices.DeleteFunc(p.waiting, func(next *ticket) bool {
		all := p.count(func(at *place) bool { return at.state == working })
		theirs := p.count(func(at *place) bool { return at.state == working && at.tenant == next.tenant })
		if p.closed || all >= p.most || theirs >= p.share() {
			return false
		}
		at := p.choose(next.tenant)
		at.state, at.tenant = working, next.tenant
		next.turn <- at
		return true
	})
}

// choose finds the best place for a tenant: with its own child, with one of no tenant, without one,
// or with the child that has waited longest. There is one: not all places work, and one at most is
// readying.
func (p *places) choose(tenant string) *place {
	if at := p.longestIdle(func(child *process) bool { return child.bound && child.tenant == tenant }); at != nil {
		return at
	}
	if at := p.longestIdle(isNobodys); at != nil {
		return at
	}
	return p.room()
}

func isNobodys(child *process) bool { return !child.bound }

// room is a place to start a child: a vacant one, or the longest idle one; nil: none.
func (p *places) room() *place {
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

// spare is the place where a child for no tenant should be started; nil: there is one, or no room.
func (p *places) spare() *place {
	readied := p.count(func(at *place) bool { return at.state == readying || at.state == idle && isNobodys(at.child) })
	if p.closed || readied > 0 || len(p.all) == p.most {
		return nil
	}
	at := p.room()
	if at != nil {
		at.state = readying
	}
	return at
}

// release gives a place back. Its child waits for its tenant's next rendering; false: the pool is
// closed, so the child has to be ended first.
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

// close ends all turns. Waiting children are clearing, and have to be ended; busy ones have to be
// killed, and are ended by who has their place.
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
