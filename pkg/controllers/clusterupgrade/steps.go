package clusterupgrade

import "github.com/trellis-addons/trellis/pkg/base/loop"

// steps are the steps of a reconciliation, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "find", Run: r.find},     // the Cluster, and the last written condition
		{Name: "gates", Run: r.gates},   // the installations that an upgrade waits for
		{Name: "hold", Run: r.hold},     // the decision, written onto the Cluster
		{Name: "report", Run: r.report}, // condition UpgradeHeld on the available catalogue, and an event
	}
}
