package calls

import (
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Note says something about one object.
type Note struct {
	Key ownership.Key
	// Reason is one of the reasons of condition Applied; of Health, a status word of kstatus.
	Reason string
	// Message for people: one line, with what to do.
	Message string
}
