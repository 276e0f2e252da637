package health

import (
	"fmt"
	"sync"
	"time"
)

// What the rules about one cluster may cost together, in time: so much at once, and after that one part
// in so many of the time that passes. Whoever has objects there may have them looked at without end.
const (
	shareAtOnce = lookTime
	shareOf     = 20
	// mostShares are known, of the clusters that were looked at last.
	mostShares = 20_000
)

// share is what the rules about one cluster may still cost. Many goroutines may use it.
type share struct {
	mutex sync.Mutex
	left  time.Duration
	since time.Time
}

func newShare(now time.Time) *share { return &share{left: shareAtOnce, since: now} }

// isSpent says whether nothing is left for now.
func (s *share) isSpent(now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = min(shareAtOnce, s.left+max(0, now.Sub(s.since))/shareOf)
	s.since = now
	return s.left <= 0
}

// pay for what was evaluated: it may cost more than is left, and nothing else is evaluated until that
// is made up for.
func (s *share) pay(took time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left -= took
}

var errShareSpent = &toldError{fmt.Sprintf("the rules about its cluster cost more than %s at once, and than one part in %d of the time "+
	"after that: let them read less", shareAtOnce, shareOf)}
