package addoninstallation

import (
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// hidden are values of the platform that must not appear in messages about an installation: answers of its user
// cluster, and output of its Pods and hooks, may quote them (ADR 72).
type hidden struct {
	// of are the digests of the values that mask hides.
	of   string
	mask calls.Mask
}

// hides is the mask of a reconciliation, for the granted and the recorded values. Without any it hides nothing.
func (f *facts) hides() calls.Mask {
	record, recorded := f.run.Record(), ""
	if record != nil {
		recorded = record.PlatformValues
	}
	if of := f.granted.Content + "/" + recorded; f.memory.hidden.of != of {
		f.memory.hidden = hidden{of: of, mask: calls.MaskOf([]any{f.platform, record.Granted()})}
	}
	return f.memory.hidden.mask
}

// hideValues removes values of the platform from the status. Names of objects stay.
func (f *facts) hideValues() {
	mask, state := f.hides(), &f.installation.Status
	for i := range state.Conditions {
		state.Conditions[i].Message = mask.Text(state.Conditions[i].Message)
	}
	for i := range state.Unhealthy {
		state.Unhealthy[i].Message = mask.Text(state.Unhealthy[i].Message)
	}
}
