package cluster

import "time"

// LookEvery sets the interval between checks for kinds that are not served.
func (f *Finders) LookEvery(interval time.Duration) { f.kinds.interval = interval }
