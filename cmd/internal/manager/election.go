package manager

import (
	"flag"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/fence"
)

// election configures how one of several replicas becomes the leader, if one does.
type election struct {
	on   bool
	term fence.Election
}

func (e *election) register(set *flag.FlagSet) {
	set.BoolVar(&e.on, "leader-elect", true, "let only one of several replicas work at a time")
	set.DurationVar(&e.term.Lease, "leader-elect-lease-duration", 15*time.Second,
		"how long replicas wait for a leader that does not renew its lease; the leader itself stops writing after nine tenths of this time")
	set.DurationVar(&e.term.Renewal, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew its lease before it exits")
	set.DurationVar(&e.term.Retry, "leader-elect-retry-period", 2*time.Second, "the time between two attempts to acquire or renew the lease")
}
