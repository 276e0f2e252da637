package coreaddon

import "github.com/trellis-addons/trellis/pkg/base/loop"

// steps are the steps of a reconciliation, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "installations", Run: r.listInstallations}, // the cluster's installations
		{Name: "findcluster", Run: r.findCluster},         // the Cluster; if it is deleted, all installations lose their protection
		{Name: "set", Run: r.decideSet},                   // rules and custom list
		{Name: "plan", Run: r.compare},                    // compares the set with the installations
		{Name: "release", Run: r.release},                 // installations out of the set lose their protection
		{Name: "apply", Run: r.apply},                     // installations of the set are created or corrected
		{Name: "report", Run: r.report},                   // status.core and AddonsReady on the available catalogue, events
	}
}
