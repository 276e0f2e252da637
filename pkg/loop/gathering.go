package loop

import (
	"sync"
	"time"
)

const shortestPause = 15 * time.Millisecond

// Gathering is for a controller with one request for all objects: a single change has its pass almost at once. While changes keep coming,
// each pass waits twice as long for more of them as the one before.
type Gathering struct {
	// Longest is the longest pause, and the time without changes after which it is short again.
	Longest time.Duration

	mutex   sync.Mutex
	pause   time.Duration
	changed time.Time
}

// Pause is after how long a pass is to be made for a change that came now.
func (g *Gathering) Pause(now time.Time) time.Duration {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if now.Sub(g.changed) > g.Longest {
		g.pause = shortestPause
	}
	g.changed = now
	return g.pause
}

// Begin says that a pass begins.
func (g *Gathering) Begin() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.pause = min(2*max(g.pause, shortestPause), g.Longest)
}
