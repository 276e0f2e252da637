package child

import (
	"context"
	"fmt"
	"time"
)

// enter waits for a place, which leave returns.
func (p *Pool) enter(ctx context.Context, tenant string) (*place, error) {
	p.mutex.Lock()
	if p.places.closed {
		p.mutex.Unlock()
		return nil, ErrClosed
	}
	p.background.Add(1) // leave ends it; Close waits for that
	mine := p.places.ask(tenant)
	p.mutex.Unlock()
	select {
	case at := <-mine.turn:
		if at == nil {
			p.background.Done()
			return nil, ErrClosed
		}
		return at, nil
	case <-ctx.Done():
	}
	defer p.background.Done()
	p.mutex.Lock()
	at := p.places.withdraw(mine)
	p.mutex.Unlock()
	if at != nil {
		p.release(at)
	}
	return nil, fmt.Errorf("waiting for a renderer: %w", context.Cause(ctx))
}

// leave returns a place, and starts a new ready child if one is missing.
func (p *Pool) leave(at *place) {
	defer p.background.Done()
	p.release(at)
	p.replenish()
}

// release makes a place available. Its child waits for its tenant's next rendering.
func (p *Pool) release(at *place) {
	for !p.tryRelease(at) {
		p.end(at)
	}
}

func (p *Pool) tryRelease(at *place) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.places.release(at)
}

// staff returns the child of a place: a new one, if it is another tenant's or was killed.
func (p *Pool) staff(at *place, tenant string) (*process, error) {
	if was := at.child; was != nil && was.lives() && (!was.bound || was.tenant == tenant) {
		was.bound, was.tenant = true, tenant
		p.replenish()
		return was, nil
	}
	p.end(at)
	made, err := p.start(at)
	if err != nil {
		return nil, err
	}
	made.bound, made.tenant = true, tenant
	return made, nil
}

func (p *Pool) start(at *place) (*process, error) {
	life := uint64((time.Duration(p.options.Renders)*p.options.CPU + startTime) / time.Second)
	made, err := p.starter.start(order{Memory: p.options.Memory, CPU: life})
	if err != nil {
		p.options.Log.Error(err, "a renderer can't be started")
		return nil, err
	}
	if !made.ready.Filtered {
		p.warned.Do(func() { p.options.Log.Info("renderers run without a filter of system calls: this system has none") })
	}
	p.options.Metrics.started()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at.child = made
	if p.places.closed {
		made.kill() // Close had no child here to kill
	}
	return made, nil
}

// end ends the child of a place, if it has one, and waits until it has exited.
func (p *Pool) end(at *place) {
	if at.child == nil {
		return
	}
	at.child.end()
	p.mutex.Lock()
	at.child = nil
	p.mutex.Unlock()
	p.options.Metrics.children.Dec()
}

// countRendering counts a child's rendering, and ends a child that failed or used much.
func (p *Pool) countRendering(at *place, well bool) {
	used := at.child
	used.served++
	memory, _, _ := used.usage.now()
	if !well || !used.lives() || used.served >= p.options.Renders || memory > p.options.Memory/2 {
		p.end(at)
	}
}

// replenish starts a child without a tenant, if there is a place, and does not wait for it.
func (p *Pool) replenish() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := p.places.spare()
	if at == nil {
		return
	}
	p.background.Go(func() {
		p.end(at)
		_, _ = p.start(at) // errors are logged; the next rendering tries again
		p.release(at)
	})
}

func (p *Pool) isClosed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.places.closed
}

// Close ends all children and waits until they have exited. Renderings fail.
func (p *Pool) Close() {
	p.mutex.Lock()
	if p.places.closed {
		p.mutex.Unlock()
		return
	}
	ended, killed := p.places.close()
	for _, at := range killed {
		at.child.kill()
	}
	p.mutex.Unlock()
	for _, at := range ended {
		p.release(at)
	}
	p.background.Wait()
	close(p.starter.calls)
}
