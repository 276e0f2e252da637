package access

import (
	"fmt"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// seedError is a call on the seed that failed. It has no text of the answer, which may quote what was sent: a key or a token.
type seedError struct {
	doing string
	err   error
}

func (e *seedError) Error() string { return e.doing + ": " + calls.Unquoted(e.err) }

// Unwrap lets callers distinguish kinds of errors.
func (e *seedError) Unwrap() error { return e.err }

func failed(err error, format string, about ...any) error {
	if err == nil {
		return nil
	}
	return &seedError{doing: fmt.Sprintf(format, about...), err: err}
}
