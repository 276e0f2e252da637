package addon

import (
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// facts are what a pass knows; each step adds to them.
type facts struct {
	// asked is the cluster that was asked for.
	asked   target.Ref
	cluster target.Description
	offer   *catalogue.Availability
}

// steps of a pass, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "find", Run: r.find},       // the one Cluster with this namespace, if it is ours to handle and the namespace is usable
		{Name: "decide", Run: r.decide},   // what it is offered
		{Name: "write", Run: r.write},     // where the metadata does not say that it is there
		{Name: "request", Run: r.request}, // the installations that were asked for when the Cluster was made
	}
}
