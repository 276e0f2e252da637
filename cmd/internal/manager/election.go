package manager

import (
	"flag"
	"time"

	"github.com/trellis-addons/trellis/pkg/fence"
)

// election is how one of several replicas is chosen, if it is.
type election struct {
	on   bool
	term fence.Election
}

func (e *election) register(set *flag.FlagSet) {
	set.BoolVar(&e.on, "leader-elect", true, "let one of several replicas work at a time")
	set.DurationVar(&e.term.Lease, "leader-elect-lease-duration", 15*time.Second,
		"how long a leader that is not heard of is waited for; it writes nothing from a tenth before that on")
	set.DurationVar(&e.term.Renewal, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew its lease before it ends")
	set.DurationVar(&e.term.Retry, "leader-elect-retry-period", 2*time.Second, "the wait between two tries to lead, or to renew the lease")
}
