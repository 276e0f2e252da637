package access

import (
	"context"
	"errors"
	"fmt"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// seedError is a call on the seed that failed. It has no words of the answer, which may quote what was sent: a key or a token.
type seedError struct {
	doing string
	err   error
}

func (e *seedError) Error() string {
	switch {
	case calls.IsAnswer(e.err):
		return e.doing + ": " + calls.Said(e.err)
	case errors.Is(e.err, context.DeadlineExceeded):
		return e.doing + ": the API server did not answer in time"
	}
	return e.doing + ": the API server did not answer as it should"
}

// Unwrap is for telling kinds of errors apart.
func (e *seedError) Unwrap() error { return e.err }

func failed(err error, format string, about ...any) error {
	if err == nil {
		return nil
	}
	return &seedError{doing: fmt.Sprintf(format, about...), err: err}
}
