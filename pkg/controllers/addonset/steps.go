package addonset

import "github.com/trellis-addons/trellis/pkg/base/loop"

// setSteps are the steps of a reconciliation of a set, in order.
func (r *Reconciler) setSteps() []loop.Step[setFacts] {
	return []loop.Step[setFacts]{
		{Name: "read", Run: r.readCopy},         // the copy, if the distributor wrote it
		{Name: "catalogues", Run: r.catalogues}, // the entries of its add-ons
		{Name: "take", Run: r.take},             // the set in memory, its finalizer
		{Name: "revise", Run: r.revise},         // the revision, into the status before anything moves
		{Name: "count", Run: r.count},           // all clusters, if the set or its dependencies changed
		{Name: "decide", Run: r.decide},         // which clusters may move now
		{Name: "release", Run: r.release},       // a deleted set whose work is done loses its finalizer
		{Name: "report", Run: r.report},         // status and events
	}
}

// clusterSteps are the steps of a reconciliation of a cluster, in order.
func (r *Reconciler) clusterSteps() []loop.Step[clusterFacts] {
	return []loop.Step[clusterFacts]{
		{Name: "confirm", Run: r.confirm},    // asks about writes that the cache lacks, or that had no answer
		{Name: "state", Run: r.countCluster}, // its state in every set
		{Name: "write", Run: r.write},        // the changes of those sets that may move it
	}
}
