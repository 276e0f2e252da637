package child

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ticket is somebody who waits for their turn.
type ticket struct {
	tenant string
	turn   chan struct{}
}

// share is how many renderings one tenant may have at a time: never all, so that nobody can keep the others out.
func (p *Pool) share() int { return max(1, p.options.Children-1) }

// enter waits for a turn. Who comes first goes first, except for tenants who have their share.
func (p *Pool) enter(ctx context.Context, tenant string) error {
	mine := &ticket{tenant: tenant, turn: make(chan struct{})}
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		return ErrClosed
	}
	p.background.Add(1) // Close waits for everybody who entered
	p.waiting = append(p.waiting, mine)
	p.callUp()
	p.mutex.Unlock()
	select {
	case <-mine.turn:
		return nil
	case <-ctx.Done():
	}
	defer p.background.Done()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := slices.Index(p.waiting, mine)
	if at < 0 {
		p.release(tenant) // the turn came in the same moment
	} else {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	return fmt.Errorf("waiting for a renderer: %w", context.Cause(ctx))
}

// callUp gives turns to those who wait. The mutex is held.
func (p *Pool) callUp() {
	p.waiting = slices.DeleteFunc(p.waiting, func(next *ticket) bool {
		if p.busy >= p.options.Children || p.busyOf[next.tenant] >= p.share() {
			return false
		}
		p.busy++
		p.busyOf[next.tenant]++
		close(next.turn)
		return true
	})
}

func (p *Pool) leave(tenant string) {
	defer p.background.Done()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.release(tenant)
}

func (p *Pool) release(tenant string) {
	p.busy--
	if p.busyOf[tenant]--; p.busyOf[tenant] == 0 {
		delete(p.busyOf, tenant)
	}
	p.callUp()
}

// take gives a child that has seen this tenant's renderings only, or none.
func (p *Pool) take(tenant string) (*process, error) {
	for {
		taken, superfluous, err := p.takeIdle(tenant)
		if err != nil {
			return nil, err
		}
		if superfluous != nil {
			p.end(superfluous)
		}
		if taken == nil {
			break
		}
		if taken.lives() {
			p.bind(taken, tenant)
			p.replenish()
			return taken, nil
		}
		p.end(taken) // it was killed while it waited, by the kernel or by an administrator
	}
	made, err := p.start()
	if err != nil {
		return nil, err
	}
	p.bind(made, tenant)
	return made, nil
}

// bind gives a child to a tenant for good. Close kills it from now on, wherever the rendering stands.
func (p *Pool) bind(taken *process, tenant string) {
	taken.bound, taken.tenant = true, tenant
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.working[taken] = true
	if p.closed {
		taken.kill()
	}
}

// takeIdle takes a fitting child from those that wait; nil: there is none, and one may be started. For that one another
// tenant's may have to go.
func (p *Pool) takeIdle(tenant string) (taken, superfluous *process, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	tests := []func(idle *process) bool{
		func(idle *process) bool { return idle.bound && idle.tenant == tenant },
		func(idle *process) bool { return !idle.bound },
	}
	for _, fits := range tests {
		if at := slices.IndexFunc(p.idle, fits); at >= 0 {
			taken = p.idle[at]
			p.idle = slices.Delete(p.idle, at, at+1)
			return taken, nil, nil
		}
	}
	return nil, p.makeRoom(), nil
}

// makeRoom counts a process that will be started, and gives the one that has to end for it, if any. The mutex is held.
func (p *Pool) makeRoom() (superfluous *process) {
	if p.alive > p.options.Children && len(p.idle) > 0 {
		superfluous, p.idle = p.idle[0], slices.Delete(p.idle, 0, 1)
	}
	p.alive++
	return superfluous
}

// start starts a child that has been counted.
func (p *Pool) start() (*process, error) {
	life := uint64((time.Duration(p.options.Renders)*p.options.CPU + startTime) / time.Second)
	made, err := p.starter.start(order{Memory: p.options.Memory, CPU: life})
	if err != nil {
		p.uncount()
		p.options.Log.Error(err, "a renderer can't be started")
		return nil, err
	}
	if !made.ready.Filtered {
		p.warned.Do(func() { p.options.Log.Info("renderers run without a filter of system calls: this system has none") })
	}
	p.options.Metrics.started()
	return made, nil
}

// end ends a child that was taken out of those that wait.
func (p *Pool) end(ended *process) {
	ended.end()
	p.uncount()
	p.options.Metrics.ended()
}

func (p *Pool) uncount() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.alive--
}

// lives says whether a waiting child is still there.
func (p *process) lives() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// giveBack lets a child wait for its tenant's next rendering. One that failed, was used often enough, or keeps much memory
// is ended.
func (p *Pool) giveBack(used *process, well bool) {
	used.served++
	memory, _, _ := used.usage.now()
	p.mutex.Lock()
	delete(p.working, used)
	keep := well && !p.closed && used.served < p.options.Renders && memory <= p.options.Memory/2
	if keep {
		p.idle = append(p.idle, used)
	}
	p.mutex.Unlock()
	if !keep {
		p.end(used)
	}
	p.replenish()
}

// replenish has a child ready that is nobody's yet, if there is room for one. It does not wait for that.
func (p *Pool) replenish() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	superfluous, wanted := p.roomForReady()
	if !wanted {
		return
	}
	p.replenishing = true
	p.background.Go(func() {
		if superfluous != nil {
			p.end(superfluous)
		}
		made, err := p.start()
		p.mutex.Lock()
		p.replenishing = false
		keep := err == nil && !p.closed
		if keep {
			p.idle = append(p.idle, made)
		}
		p.mutex.Unlock()
		if err == nil && !keep {
			p.end(made)
		}
	})
}

// roomForReady counts a process if one should be started to be ready. The mutex is held.
func (p *Pool) roomForReady() (superfluous *process, wanted bool) {
	ready := slices.ContainsFunc(p.idle, func(idle *process) bool { return !idle.bound })
	full := p.alive > p.options.Children && len(p.idle) == 0
	if p.closed || p.replenishing || ready || full {
		return nil, false
	}
	return p.makeRoom(), true
}

func (p *Pool) isClosed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.closed
}

// Close ends all children and waits until none is left. Renderings that go on fail.
func (p *Pool) Close() {
	p.mutex.Lock()
	if p.closed {
		p.mutex.Unlock()
		return
	}
	p.closed = true
	idle := p.idle
	p.idle = nil
	for working := range p.working {
		working.kill()
	}
	p.mutex.Unlock()
	for _, one := range idle {
		p.end(one)
	}
	p.background.Wait()
	p.starter.close()
}
