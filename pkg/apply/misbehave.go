package apply

import (
	"errors"
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// MisbehavesError says that a user cluster's API server answers as none does. It belongs to a tenant, so nothing of such an answer
// is kept, and nothing is concluded from it: an object that it does not show is not gone.
type MisbehavesError = remote.MisbehavesError

func misbehaves(format string, about ...any) error {
	return &MisbehavesError{Did: fmt.Sprintf(format, about...)}
}

// misbehaved is the note about an object whose answer gave it fields that it can't have.
func misbehaved(key ownership.Key) Note {
	return Note{
		Key: key, Reason: kubermaticv1.ReasonClusterMisbehaves,
		Message: fmt.Sprintf("the API server says of %s that it has more fields than were sent: "+
			"they are not kept, and changes of the object's fields are not seen", key),
	}
}

func isMisbehaviour(err error) bool {
	_, is := errors.AsType[*MisbehavesError](err)
	return is
}
