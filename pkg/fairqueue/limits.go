package fairqueue

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// slowLane is how many workers all slow clusters hold together.
	slowLane = 2
	// slowAfter is longer than an API server may leave a request without an answer's beginning, so that one that is just gone
	// costs a pass its error, and no place in a lane.
	slowAfter = 15 * time.Second
	deadline  = 2 * time.Minute
	// shareTenths of the workers are a cluster's share.
	shareTenths = 4
	// remembered is how long a slow pass is held against a cluster.
	remembered = time.Hour
	// mostOwed is the most quick passes that make a cluster well again.
	mostOwed = 16
)

// Limits of a queue. What is 0 is chosen from the number of workers.
type Limits struct {
	// Workers is how many objects are in work at a time.
	Workers int
	// Share is how many of the workers one cluster holds at most: 4 of 10, and never all where there are two or more.
	Share int
	// SlowLane is how many of the workers all slow clusters hold together: 2, and never all where there are two or more.
	SlowLane int
	// SlowAfter is the age of a pass that makes its cluster a slow one: 15 s.
	SlowAfter time.Duration
	// Deadline is the age at which a pass ends in any case: 2 minutes.
	Deadline time.Duration
}

func (l Limits) filled() Limits {
	l.Workers = max(l.Workers, 1)
	notAll := max(l.Workers-1, 1)
	l.Share = min(max(cmp.Or(l.Share, l.Workers*shareTenths/10), 1), notAll)
	l.SlowLane = min(max(cmp.Or(l.SlowLane, slowLane), 1), notAll)
	l.SlowAfter = cmp.Or(l.SlowAfter, slowAfter)
	l.Deadline = max(cmp.Or(l.Deadline, deadline), l.SlowAfter)
	return l
}

// OverdueError is the cause with which a pass's context ends when the pass takes too long.
type OverdueError struct {
	// After is the time that the pass had.
	After time.Duration
}

func (e *OverdueError) Error() string { return fmt.Sprintf("the pass was not done within %s", e.After) }
