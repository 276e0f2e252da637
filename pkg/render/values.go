package render

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// ValuesTemplateFile is the file that errors of a valuesTemplate name.
const ValuesTemplateFile = "valuesTemplate"

// ValuesInput is what the values of a valuesTemplate depend on. Equal inputs give equal values.
type ValuesInput struct {
	// Addon is the name of the add-on, for messages.
	Addon string
	// Tenant names whose rendering this is, such as a cluster's namespace: renderings of two tenants never share a process.
	// The values do not depend on it.
	Tenant string
	// Template is a Go template that gives values in YAML.
	Template string
	// Data is the cluster's template data; its Variables are those that are set by flag.
	Data templatedata.Data
}

// ValuesKeeper renders the values that it does not hold yet, and keeps what came out, as a Keeper does. ErrPending says that it
// takes longer than a pass should wait: wake is called when it is over, from any goroutine.
type ValuesKeeper interface {
	RenderValues(ctx context.Context, input ValuesInput, wake func()) (map[string]any, error)
}

// ValuesRenderer renders a catalogue's valuesTemplate to a layer of values, within the limits of package values. Errors that
// only an edit mends are *TemplateError and *LimitError.
type ValuesRenderer interface {
	RenderValues(ctx context.Context, input ValuesInput) (map[string]any, error)
}
