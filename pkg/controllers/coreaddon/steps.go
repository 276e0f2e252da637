package coreaddon

import "github.com/trellis-addons/trellis/pkg/loop"

// steps of a pass, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "look", Run: r.look},                // the cluster's installations
		{Name: "find-cluster", Run: r.findCluster}, // the one Cluster whose namespace this is; deleted or gone, all is let go
		{Name: "set", Run: r.decideSet},            // rules and custom list
		{Name: "plan", Run: r.compare},             // the set against what is there
		{Name: "let-go", Run: r.letGo},             // what is out of the set loses its protection
		{Name: "apply", Run: r.apply},              // what is in the set is made, or put right
		{Name: "report", Run: r.tell},              // status.core and AddonsReady on the available catalogue, events
	}
}
