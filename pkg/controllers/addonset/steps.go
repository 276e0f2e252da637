package addonset

import "github.com/trellis-addons/trellis/pkg/loop"

// setSteps of a pass over a set, in order.
func (r *Reconciler) setSteps() []loop.Step[setFacts] {
	return []loop.Step[setFacts]{
		{Name: "read", Run: r.readCopy},         // the copy, if the distributor wrote it
		{Name: "catalogues", Run: r.catalogues}, // the entries of its add-ons
		{Name: "take", Run: r.take},             // the set in memory, its finalizer
		{Name: "revise", Run: r.revise},         // the revision, into the status before anything moves
		{Name: "count", Run: r.count},           // all clusters, where the set or what it depends on changed
		{Name: "decide", Run: r.decide},         // which clusters may move now
		{Name: "release", Run: r.release},       // a deleted set whose work is done loses its finalizer
		{Name: "report", Run: r.report},         // status and events
	}
}

// clusterSteps of a pass over a cluster, in order.
func (r *Reconciler) clusterSteps() []loop.Step[clusterFacts] {
	return []loop.Step[clusterFacts]{
		{Name: "confirm", Run: r.confirm}, // what was written and is not in the cache, or had no answer
		{Name: "stand", Run: r.stand},     // how it stands in every set
		{Name: "write", Run: r.write},     // what those sets want that may move it
	}
}
