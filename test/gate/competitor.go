package gate

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Competitor is one of two processes that may lead. It does something at one of its writes, and takes down what is sent after another one
// was done.
type Competitor struct {
	Process *fleet.Process
	// Counts says which writes count, and Place is the one of them at which Reach is called.
	Counts func(Call) bool
	Place  int
	Reach  func()
	// Cut says whether calls about the lease are cut from then on.
	Cut bool

	mutex     sync.Mutex
	writes    int
	isReached bool
	isOver    bool
	late      []string
}

// Guard of a rival's calls.
func (r *Competitor) Guard() Guard {
	return Guard{Before: func(call Call) bool {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		isLease := strings.Contains(call.Path, "/leases/")
		switch {
		case isLease && r.Cut && r.isReached:
			return false
		case isLease, call.Method == http.MethodGet, strings.HasSuffix(call.Path, "/events"):
		case r.isOver:
			r.late = append(r.late, call.Method+" "+call.Path)
		case r.Counts(call):
			if r.writes++; r.writes == r.Place {
				r.isReached = true
				r.Reach()
			}
		}
		return true
	}}
}

// Reached is nil once the write was.
func (r *Competitor) Reached() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.isReached {
		return fmt.Errorf("write %d was not reached, but %d", r.Place, r.writes)
	}
	return nil
}

// Over takes down all that is sent from now on.
func (r *Competitor) Over() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.isOver = true
}

// Written is how many of the writes that count were sent.
func (r *Competitor) Written() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.writes
}

// Late is what was sent after Over.
func (r *Competitor) Late() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.late)
}
