package apply

import (
	"time"

	"github.com/trellis-addons/trellis/pkg/lru"
)

// standsFor is how long a namespace that was seen counts as standing. One that goes meanwhile shows at the next write into it.
const standsFor = 10 * time.Second

// Namespaces knows which namespaces of a user cluster stood a moment ago: rollouts that begin together ask once for each. It may
// be used by many goroutines.
type Namespaces struct{ seen *lru.Cache[string, struct{}] }

// NewNamespaces knows of none; now tells the time.
func NewNamespaces(now func() time.Time) *Namespaces {
	return &Namespaces{seen: lru.New[string, struct{}](0, now)}
}

// stood says whether a namespace was seen a moment ago. Those of nil never were.
func (n *Namespaces) stood(name string) bool {
	if n == nil {
		return false
	}
	_, seen := n.seen.Get(name)
	return seen
}

func (n *Namespaces) saw(name string) {
	if n != nil {
		n.seen.Put(name, struct{}{}, standsFor)
	}
}
