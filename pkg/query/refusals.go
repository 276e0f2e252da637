package query

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is why a request gets no answer. Its text is sent to the caller.
type Refusal interface {
	error
	// Status is the HTTP status, Reason a word for programs.
	Status() int
	Reason() metav1.StatusReason
}

// UnauthenticatedError says that there is no valid token, but not what is wrong with it.
type UnauthenticatedError struct{}

func (*UnauthenticatedError) Error() string {
	return "send a valid token of the seed's API server: Authorization: Bearer <token>"
}

// Status is 401.
func (*UnauthenticatedError) Status() int { return http.StatusUnauthorized }

// Reason is Unauthorized.
func (*UnauthenticatedError) Reason() metav1.StatusReason { return metav1.StatusReasonUnauthorized }

// NotFoundError says that something does not exist or that the caller may not see it, but not
// which.
type NotFoundError struct{}

func (*NotFoundError) Error() string { return "there is nothing here that you may see" }

// Status is 404.
func (*NotFoundError) Status() int { return http.StatusNotFound }

// Reason is NotFound.
func (*NotFoundError) Reason() metav1.StatusReason { return metav1.StatusReasonNotFound }

type ParameterError struct {
	// Parameter is its name, or "body" or "query".
	Parameter string
	// Problem says what is wrong and how to fix it.
	Problem string
}

func (e *ParameterError) Error() string { return fmt.Sprintf("%s: %s", e.Parameter, e.Problem) }

// Status is 400.
func (*ParameterError) Status() int { return http.StatusBadRequest }

// Reason is BadRequest.
func (*ParameterError) Reason() metav1.StatusReason { return metav1.StatusReasonBadRequest }

type TooLargeError struct {
	// Limit in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string { return fmt.Sprintf("the body may have %d bytes", e.Limit) }

// Status is 413.
func (*TooLargeError) Status() int { return http.StatusRequestEntityTooLarge }

// Reason is RequestEntityTooLarge.
func (*TooLargeError) Reason() metav1.StatusReason { return metav1.StatusReasonRequestEntityTooLarge }

// MediaTypeError says that the body is not JSON.
type MediaTypeError struct{}

func (*MediaTypeError) Error() string { return "send the body as application/json, or name no type" }

// Status is 415.
func (*MediaTypeError) Status() int { return http.StatusUnsupportedMediaType }

// Reason is UnsupportedMediaType.
func (*MediaTypeError) Reason() metav1.StatusReason { return metav1.StatusReasonUnsupportedMediaType }

// MethodError says that the path has other methods.
type MethodError struct {
	Allowed []string
}

func (e *MethodError) Error() string { return "use " + strings.Join(e.Allowed, " or ") }

// Status is 405.
func (*MethodError) Status() int { return http.StatusMethodNotAllowed }

// Reason is MethodNotAllowed.
func (*MethodError) Reason() metav1.StatusReason { return metav1.StatusReasonMethodNotAllowed }

// UnavailableError says that there is no answer now.
type UnavailableError struct {
	// Problem is for the caller, err is not.
	Problem string
	err     error
}

func (e *UnavailableError) Error() string { return e.Problem + "; try again" }

func (e *UnavailableError) Unwrap() error { return e.err }

// Status is 503.
func (*UnavailableError) Status() int { return http.StatusServiceUnavailable }

// Reason is ServiceUnavailable.
func (*UnavailableError) Reason() metav1.StatusReason { return metav1.StatusReasonServiceUnavailable }

// internalError stands for a defect of ours, whose cause is only logged.
type internalError struct{}

func (*internalError) Error() string {
	return "the request could not be answered; the manager's log says why"
}

func (*internalError) Status() int { return http.StatusInternalServerError }

func (*internalError) Reason() metav1.StatusReason { return metav1.StatusReasonInternalError }

// refusalOf is the refusal to send for an error; false for an unexpected error.
func refusalOf(err error) (Refusal, bool) {
	var refusal Refusal
	if errors.As(err, &refusal) {
		return refusal, true
	}
	return &internalError{}, false
}
