package access

import (
	"fmt"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// seedError is a call on the seed that failed. It has no words of the answer, which may quote what was sent: a key or a token.
type seedError struct {
	doing string
	err   error
}

func (e *seedError) Error() string { return e.doing + ": " + calls.Unquoted(e.err) }

// Unwrap is for telling kinds of errors apart.
func (e *seedError) Unwrap() error { return e.err }

func failed(err error, format string, about ...any) error {
	if err == nil {
		return nil
	}
	return &seedError{doing: fmt.Sprintf(format, about...), err: err}
}
