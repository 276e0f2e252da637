package health

import (
	"fmt"
	"sync"
	"time"
)

// What rules of one share may cost together, in time: so much at once, and after that one part in so
// many of the time that passes. A cluster has one for each type of catalogue. Whoever has objects there may
// have them looked at without end.
const (
	shareAtOnce = lookTime
	sharePart   = 20
	// mostShares are known: those that paid last.
	mostShares = 20_000
)

// share is what its rules may still cost. Many goroutines may use it.
type share struct {
	mutex sync.Mutex
	left  time.Duration
	since time.Time
}

func newShare(now time.Time) *share { return &share{left: shareAtOnce, since: now} }

// remaining is what is left by now; none where it is not above 0.
func (s *share) remaining(now time.Time) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = min(shareAtOnce, s.left+max(0, now.Sub(s.since))/sharePart)
	s.since = now
	return s.left
}

// pay for what was evaluated: it may cost more than is left, and nothing else is evaluated until that
// is made up for. A process that stood still meanwhile is no fault of the rules: what is owed is bounded.
func (s *share) pay(took time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = max(s.left-took, -shareAtOnce)
}

var errShareSpent = &toldError{fmt.Sprintf(
	"the rules about its cluster took more than %s, and since then more than 1/%d of the time: let them read less", shareAtOnce, sharePart)}
