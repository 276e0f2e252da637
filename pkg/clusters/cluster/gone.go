package cluster

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// GoneInterval is the time between the two calls of Gone.
const GoneInterval = 30 * time.Second

// absences stores when clusters were first found missing.
type absences struct {
	clock clock.PassiveClock

	mutex sync.Mutex
	first map[target.Ref]time.Time
}

func newAbsences() absences {
	return absences{clock: clock.RealClock{}, first: map[target.Ref]time.Time{}}
}

// confirm takes an answer about a cluster. The cluster is gone if two answers in a row report it as absent, at least
// GoneInterval apart.
func (a *absences) confirm(ref target.Ref, isAbsent bool, err error) (bool, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil || !isAbsent {
		delete(a.first, ref)
		return false, err
	}
	now := a.clock.Now()
	first, seen := a.first[ref]
	if !seen {
		a.first[ref] = now
		return false, nil
	}
	return now.Sub(first) >= GoneInterval, nil
}
