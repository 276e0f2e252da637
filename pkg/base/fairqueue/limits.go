package fairqueue

import (
	"cmp"
	"fmt"
	"time"
)

const (
	// slowLane is how many workers all slow clusters have together.
	slowLane = 2
	// slowAfter is longer than an API server may leave a request without an answer. So a server that just went down
	// costs a reconciliation its error, and no place in a lane.
	slowAfter = 15 * time.Second
	deadline  = 2 * time.Minute
	// shareTenths of the workers are the most that one cluster gets.
	shareTenths = 4
	// remembered is how long a slow reconciliation counts against a cluster.
	remembered = time.Hour
	// mostOwed is the most quick reconciliations that return a cluster to the normal lane.
	mostOwed = 16
)

// Cluster identifies the cluster whose turns an object takes.
type Cluster struct {
	// Tenant owns the cluster, and may own others.
	Tenant string
	// Name distinguishes it from others of the tenant; "": it is the only one.
	Name string
}

// Limits of a queue. A 0 is replaced by a default, which depends on the number of workers.
type Limits struct {
	Workers int
	// Share is how many workers one tenant has at most, and so a cluster that is its only one: 4 of
	// 10, and never all of two or more. If there may be others, a cluster has one less.
	Share int
	// SlowLane is how many workers all slow clusters have: 2, and never all of two or more.
	SlowLane int
	// SlowAfter is the age at which a reconciliation counts as slow: 15 s.
	SlowAfter time.Duration
	// Deadline is the age at which every reconciliation ends: 2 minutes.
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

// shareOf is how many workers a cluster has at most: one that may have neighbours leaves them one.
func (l Limits) shareOf(cluster Cluster) int {
	if cluster.Name == "" {
		return l.Share
	}
	return max(l.Share-1, 1)
}

// OverdueError is the cause of a context that ended because the reconciliation took too long.
type OverdueError struct {
	// After is the time that the reconciliation had.
	After time.Duration
}

func (e *OverdueError) Error() string {
	return fmt.Sprintf("the reconciliation did not end within %s", e.After)
}
