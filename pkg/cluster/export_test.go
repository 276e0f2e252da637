package cluster

import "time"

// LookEvery sets how often kinds are looked for that are not served.
func (f *Finders) LookEvery(interval time.Duration) { f.kinds.interval = interval }
