package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Exit codes. Scripts use them: never change one.
const (
	// ExitDone: the command did what it was called for.
	ExitDone = 0
	// ExitNo: the answer is no: something differs, does not fit, or is not ready.
	ExitNo = 1
	// ExitFailed: an error without a code of its own.
	ExitFailed = 2
	// ExitUsage: a verb, a flag or an argument is wrong.
	ExitUsage = 3
	// ExitNotFound: the add-on, installation, cluster or set does not exist.
	ExitNotFound = 4
	// ExitForbidden: the caller lacks a right, which the error names.
	ExitForbidden = 5
	// ExitContext: the context is not the cluster that the verb needs: a seed, or a master.
	ExitContext = 6
	// ExitUnreachable: an API server or the query endpoint can't be reached.
	ExitUnreachable = 7
	// ExitTimeout: the state that the command waits for was not reached in time.
	ExitTimeout = 8
	// ExitRefused: admission refused, or the caller did not confirm.
	ExitRefused = 9
)

// ExitCodes are all exit codes with their meaning, in order.
var ExitCodes = []string{
	ExitDone:        "done",
	ExitNo:          "the answer is no: something differs, does not fit, or is not ready",
	ExitFailed:      "any other error",
	ExitUsage:       "a verb, a flag or an argument is wrong",
	ExitNotFound:    "the add-on, installation, cluster or set does not exist",
	ExitForbidden:   "a right is missing: the error names verb, resource and namespace",
	ExitContext:     "the context is not the cluster that the verb needs: a seed, or a master",
	ExitUnreachable: "an API server or the query endpoint can't be reached",
	ExitTimeout:     "the state that the command waits for was not reached in time",
	ExitRefused:     "admission refused, or the caller did not confirm",
}

// Error is an error with its exit code, and what to do.
type Error struct {
	Code int
	// Hint says what to do; may be empty.
	Hint string
	Err  error
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Hint
}

func (e *Error) Unwrap() error { return e.Err }

// Fail makes an Error. The hint says what to do.
func Fail(code int, hint, format string, arguments ...any) error {
	return &Error{Code: code, Hint: hint, Err: fmt.Errorf(format, arguments...)}
}

// Partly says after how many of all changes an error came. The output has a line for each of them.
func Partly(err error, done, all int) error {
	if err == nil || done == 0 {
		return err
	}
	return fmt.Errorf("%d of %d changes were made before this error: %w", done, all, err)
}

// exitCode is that of an error.
func exitCode(err error) int {
	if coded, ok := errors.AsType[*Error](err); ok {
		return coded.Code
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ExitForbidden
	case apierrors.IsNotFound(err):
		return ExitNotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return ExitRefused
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	case errors.Is(err, context.Canceled): // the caller interrupted a call
		return ExitFailed
	case isUnreachable(err):
		return ExitUnreachable
	}
	return ExitFailed
}

func isUnreachable(err error) bool {
	if _, isCall := errors.AsType[*url.Error](err); isCall {
		return true
	}
	_, isNet := errors.AsType[net.Error](err)
	return isNet
}

// oneLine is an error as one line without control characters.
func oneLine(err error) string { return strings.Join(strings.Fields(text.Line(err.Error())), " ") }
