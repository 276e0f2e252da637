package child

import "slices"

// state says what a place is for at the moment.
type state string

const (
	// vacant: there is no child, and nobody makes one.
	vacant state = "vacant"
	// idle: its child waits for a rendering.
	idle state = "idle"
	// working: a rendering has the place. Who has it ends the child that was there if it does not fit, and starts another.
	working state = "working"
	// readying: a child that is nobody's yet is being made, after the one that was there has ended.
	readying state = "readying"
	// clearing: the pool is closed, and the child that waited is being ended.
	clearing state = "clearing"
)

// place is where one child at a time lives. While it is working, readying or clearing, its child is the business of the one
// who has it, and of nobody else.
type place struct {
	state state
	// tenant has the place while it is working.
	tenant string
	// child is the process that was started here and has not ended; nil: none.
	child *process
	// since is when the child began to wait; the smaller one has waited longer.
	since uint64
}

// ticket is somebody who waits for their turn.
type ticket struct {
	tenant string
	// turn brings the place; it is closed where no turn comes any more.
	turn chan *place
}

// places are all that a pool knows of its children: one place more than renderings go on at a time, and who waits. A child has
// a place as long as it lives, so there are never more of them, and none is lost. It is a value without processes of its
// own, clocks or locks: the pool holds its mutex.
type places struct {
	all     []*place
	waiting []*ticket
	given   uint64
	closed  bool
}

func newPlaces(children int) *places {
	made := &places{}
	for range children + 1 {
		made.all = append(made.all, &place{state: vacant})
	}
	return made
}

// most renderings go on at a time: a child that is nobody's has a place beside them.
func (p *places) most() int { return len(p.all) - 1 }

// share is how many renderings one tenant may have at a time: never all, so that nobody can keep the others out.
func (p *places) share() int { return max(1, p.most()-1) }

// count is how many places are as asked.
func (p *places) count(asked func(at *place) bool) int {
	found := 0
	for _, at := range p.all {
		if asked(at) {
			found++
		}
	}
	return found
}

// ask waits for a turn. Who comes first goes first, except for tenants who have their share.
func (p *places) ask(tenant string) *ticket {
	mine := &ticket{tenant: tenant, turn: make(chan *place, 1)}
	p.waiting = append(p.waiting, mine)
	p.callUp()
	return mine
}

// withdraw is for who does not wait any more. A turn that came in the same moment has to be given back: its place is returned.
func (p *places) withdraw(mine *ticket) *place {
	if at := slices.Index(p.waiting, mine); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return nil
	}
	return <-mine.turn
}

// callUp gives turns to those who wait.
func (p *places) callUp() {
	p.waiting = slices.DeleteFunc(p.waiting, func(next *ticket) bool {
		all := p.count(func(at *place) bool { return at.state == working })
		theirs := p.count(func(at *place) bool { return at.state == working && at.tenant == next.tenant })
		if p.closed || all >= p.most() || theirs >= p.share() {
			return false
		}
		at := p.choose(next.tenant)
		at.state, at.tenant = working, next.tenant
		next.turn <- at
		return true
	})
}

// choose finds the best place for a tenant: with a child of their own, with one that is nobody's, without any, or with
// the child of another tenant that has waited longest. There is one, as not all places are at work and one at most is readying.
func (p *places) choose(tenant string) *place {
	if at := p.longestIdle(func(child *process) bool { return child.bound && child.tenant == tenant }); at != nil {
		return at
	}
	if at := p.longestIdle(isNobodys); at != nil {
		return at
	}
	return p.room()
}

// isNobodys says that a child has not rendered for any tenant.
func isNobodys(child *process) bool { return !child.bound }

// room is a place where a child may be started: a vacant one, or the one whose child has waited longest; nil: there is none.
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

// spare gives the place where a child should be made ready that is nobody's; nil: there is one, or no room for it.
func (p *places) spare() *place {
	readied := p.count(func(at *place) bool { return at.state == readying || at.state == idle && isNobodys(at.child) })
	if p.closed || readied > 0 {
		return nil
	}
	at := p.room()
	if at != nil {
		at.state = readying
	}
	return at
}

// release is for who had a place and is done with it. A child that is there waits for its tenant's next rendering; false: the
// pool is closed, so the child has to be ended first.
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

// close gives no turn any more. What waited for work is clearing from now on, and given to be ended; what works is given to be
// killed, and ended by who has it.
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
