package apply

import (
	"sync"
	"time"
)

// standsFor is how long a namespace that was seen counts as standing. One that goes meanwhile shows at the next write into it.
const standsFor = 10 * time.Second

// Namespaces knows which namespaces of a user cluster stood a moment ago: rollouts that begin together ask once for each. It may
// be used by many goroutines.
type Namespaces struct {
	now  func() time.Time
	lock sync.Mutex
	seen map[string]time.Time
}

// NewNamespaces knows of none; now tells the time.
func NewNamespaces(now func() time.Time) *Namespaces {
	return &Namespaces{now: now, seen: map[string]time.Time{}}
}

// stood says whether a namespace was seen a moment ago. Those of nil never were.
func (n *Namespaces) stood(name string) bool {
	if n == nil {
		return false
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	when, seen := n.seen[name]
	return seen && n.now().Sub(when) < standsFor
}

func (n *Namespaces) saw(name string) {
	if n == nil {
		return
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	now := n.now()
	for other, when := range n.seen {
		if now.Sub(when) >= standsFor {
			delete(n.seen, other)
		}
	}
	n.seen[name] = now
}
