package health

import (
	"fmt"
	"sync"
	"time"
)

// The time that rules of one share may cost together: a burst, and after that a fraction of the time that passes. A
// cluster has one share for each type of catalogue. A client that has objects there may cause any number of
// evaluations.
const (
	shareAtOnce = lookTime
	sharePart   = 20
	// mostShares is how many shares are kept: the last ones that paid.
	mostShares = 20_000
)

// share is the remaining budget of its rules. Many goroutines may use it.
type share struct {
	mutex sync.Mutex
	left  time.Duration
	since time.Time
}

func newShare(now time.Time) *share { return &share{left: shareAtOnce, since: now} }

// remaining is the rest by now. If it is not above 0, nothing is left.
func (s *share) remaining(now time.Time) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = min(shareAtOnce, s.left+max(0, now.Sub(s.since))/sharePart)
	s.since = now
	return s.left
}

// pay charges evaluations: they may cost more than is left, and nothing else is evaluated until the debt is paid off. The
// debt is bounded, since a pause of the whole process meanwhile is not the rules' fault.
func (s *share) pay(took time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = max(s.left-took, -shareAtOnce)
}

var errShareSpent = &shownError{fmt.Sprintf(
	"the health rules for this cluster used up their budget of %s, which refills at 1/%d of the elapsed time: make them read less",
	shareAtOnce, sharePart)}
