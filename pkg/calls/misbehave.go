package calls

import (
	"errors"
	"fmt"

	"github.com/trellis-addons/trellis/pkg/remote"
)

// MisbehavesError says that a user cluster's API server answers as none does. It belongs to a tenant, so nothing of such an answer
// is kept, and nothing is concluded from it: an object that it does not show is not gone.
type MisbehavesError = remote.MisbehavesError

func Misbehaves(format string, about ...any) error {
	return &MisbehavesError{Did: fmt.Sprintf(format, about...)}
}

func IsMisbehaviour(err error) bool {
	_, is := errors.AsType[*MisbehavesError](err)
	return is
}
