package coreaddon

import "github.com/trellis-addons/trellis/pkg/loop"

// steps of a pass, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "installations", Run: r.listInstallations}, // the cluster's installations
		{Name: "findcluster", Run: r.findCluster},         // the one Cluster whose namespace this is; deleted or gone, all lose their protection
		{Name: "set", Run: r.decideSet},                   // rules and custom list
		{Name: "plan", Run: r.compare},                    // the set against what is there
		{Name: "release", Run: r.release},                 // what is out of the set loses its protection
		{Name: "apply", Run: r.apply},                     // what is in the set is made, or put right
		{Name: "report", Run: r.report},                   // status.core and AddonsReady on the available catalogue, events
	}
}
