package fence

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// FallenError says that the process does not lead any more.
type FallenError struct {
	Why string
}

func (e *FallenError) Error() string {
	return fmt.Sprintf("this process is no longer the leader (%s): it stops writing and exits", e.Why)
}

// instant is a moment by two clocks: a monotonic one, and the wall clock.
type instant struct {
	steady time.Duration
	day    time.Time
}

// since is how much later the instant is than another one, by the clock that shows more.
func (i instant) since(before instant) time.Duration {
	return max(i.steady-before.steady, i.day.Sub(before.day))
}

var started = time.Now()

func now() instant { return instant{steady: time.Since(started), day: time.Now().Round(0)} }

// Fence says whether the process may write: a nil one always. It is safe for concurrent use.
type Fence struct {
	now func() instant

	mutex sync.Mutex
	// led says that a lease was held; it holds from renewed on, for that long.
	led     bool
	renewed instant
	holds   time.Duration
	fallen  *FallenError
	down    chan struct{}
	// ahead is how far the wall clock is ahead of the API server's, by its last answer to the election.
	ahead time.Duration
}

// New makes a fence that allows everything until its Lock holds a lease.
func New() *Fence { return &Fence{now: now, down: make(chan struct{})} }

// marginPart of a lease's duration is for bytes on their way, and for clocks that differ.
const marginPart = 10

// renew makes the fence hold for a lease's duration, from the moment before its renewal was sent.
func (f *Fence) renew(sent instant, duration time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.fallen != nil {
		return
	}
	f.led, f.renewed, f.holds = true, sent, duration-duration/marginPart
}

// Holds is nil while the process may write. After that it is always a FallenError.
func (f *Fence) Holds() error {
	if f == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.fallen != nil {
		return f.fallen
	}
	if !f.led {
		return nil
	}
	if age := f.now().since(f.renewed); age >= f.holds {
		return f.fall(fmt.Sprintf("the lease was last renewed %s ago", age.Round(time.Millisecond)))
	}
	return nil
}

// fall needs the mutex.
func (f *Fence) fall(why string) error {
	f.fallen = &FallenError{Why: why}
	close(f.down)
	return f.fallen
}

// giveUp makes the fence fall before the lease is released.
func (f *Fence) giveUp() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.fallen == nil {
		_ = f.fall("it released its lease")
	}
}

// checkInterval is the time between two checks of the wall clock, which timers don't follow.
const checkInterval = time.Second

// Start ends with an error when the fence falls, and so ends the manager. It is a manager.Runnable.
func (f *Fence) Start(ctx context.Context) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.down:
		case <-ticker.C:
		}
		if err := f.Holds(); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// NeedLeaderElection is false: a replica that waits to lead checks, too.
func (f *Fence) NeedLeaderElection() bool { return false }
