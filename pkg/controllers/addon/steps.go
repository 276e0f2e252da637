package addon

import (
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// facts are the findings of one reconciliation; each step adds to them.
type facts struct {
	// asked is the requested cluster.
	asked   target.Ref
	cluster target.Description
	offer   *catalogue.Availability
}

// steps are the steps of a reconciliation, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "find", Run: r.find},       // the one Cluster with this namespace, if this worker handles it and the namespace is usable
		{Name: "decide", Run: r.decide},   // the offer for it
		{Name: "write", Run: r.write},     // unless the metadata shows that it is written
		{Name: "request", Run: r.request}, // the installations that the Cluster requested at its creation
	}
}
