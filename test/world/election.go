package world

import (
	"time"

	"github.com/trellis-addons/trellis/pkg/fence"
)

// Election has times that are short, and long enough for a machine that has other things to do.
var Election = fence.Election{Lease: 6 * time.Second, Renewal: 4 * time.Second, Retry: 500 * time.Millisecond}

// TakeoverLag is what a take-over may take beyond the lease, whatever that is: 20 s by the managers' 15 s (RS40).
const TakeoverLag = 5 * time.Second
