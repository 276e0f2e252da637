package clusterupgrade

import "github.com/trellis-addons/trellis/pkg/loop"

// steps of a pass, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "find", Run: r.find},     // the Cluster, and what was written last
		{Name: "gates", Run: r.gates},   // the installations that an upgrade waits for
		{Name: "hold", Run: r.hold},     // what is decided, onto the Cluster
		{Name: "report", Run: r.report}, // condition UpgradeHeld on the available catalogue, and an event
	}
}
