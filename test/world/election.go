package world

import (
	"time"

	"github.com/trellis-addons/trellis/pkg/base/fence"
)

// Election has times that are short, but long enough for a busy machine.
var Election = fence.Election{Lease: 6 * time.Second, Renewal: 4 * time.Second, Retry: 500 * time.Millisecond}

// TakeoverLag is the maximum time of a takeover after the lease, for any lease: 20 s with the managers' 15 s (RS40).
const TakeoverLag = 5 * time.Second
