package query

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is the reason why a request gets no answer. Its text is sent to the caller.
type Refusal interface {
	error
	// code is the HTTP status, with a reason for programs.
	code() (int, metav1.StatusReason)
}

// UnauthenticatedError says that there is no valid token and no valid client certificate, but not what is wrong.
type UnauthenticatedError struct{}

func (*UnauthenticatedError) Error() string {
	return "send a valid token (Authorization: Bearer <token>) or client certificate of the seed's API server"
}

func (*UnauthenticatedError) code() (int, metav1.StatusReason) {
	return http.StatusUnauthorized, metav1.StatusReasonUnauthorized
}

// NotFoundError says that something does not exist or is not visible, but not which.
type NotFoundError struct{}

func (*NotFoundError) Error() string { return "there is nothing here that you may see" }

func (*NotFoundError) code() (int, metav1.StatusReason) {
	return http.StatusNotFound, metav1.StatusReasonNotFound
}

// ParameterError says what is wrong with the request.
type ParameterError struct {
	// Parameter is its name, or "body" or "query".
	Parameter string
	// Problem says what is wrong and how to fix it.
	Problem string
}

func (e *ParameterError) Error() string { return fmt.Sprintf("%s: %s", e.Parameter, e.Problem) }

func (*ParameterError) code() (int, metav1.StatusReason) {
	return http.StatusBadRequest, metav1.StatusReasonBadRequest
}

// TooLargeError says that the body is too large.
type TooLargeError struct {
	// Limit in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body may have at most %d bytes", e.Limit)
}

func (*TooLargeError) code() (int, metav1.StatusReason) {
	return http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
}

// MediaTypeError says that the body is not JSON.
type MediaTypeError struct{}

func (*MediaTypeError) Error() string {
	return "send the body as application/json, or without a Content-Type"
}

func (*MediaTypeError) code() (int, metav1.StatusReason) {
	return http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType
}

// MethodError says that the path has other methods.
type MethodError struct {
	Allowed []string
}

func (e *MethodError) Error() string { return "use " + strings.Join(e.Allowed, " or ") }

func (*MethodError) code() (int, metav1.StatusReason) {
	return http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
}

// UnavailableError says that there is no answer now.
type UnavailableError struct {
	// Problem is for the caller, err is not.
	Problem string
	err     error
}

func (e *UnavailableError) Error() string { return e.Problem + "; try again" }

func (e *UnavailableError) Unwrap() error { return e.err }

func (*UnavailableError) code() (int, metav1.StatusReason) {
	return http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
}

// internalError is the answer for a defect of ours, whose cause is only logged.
type internalError struct{}

func (*internalError) Error() string {
	return "the request could not be answered; the manager's log says why"
}

func (*internalError) code() (int, metav1.StatusReason) {
	return http.StatusInternalServerError, metav1.StatusReasonInternalError
}

// refusalOf is the refusal to send for an error; false for an unexpected error.
func refusalOf(err error) (Refusal, bool) {
	var refusal Refusal
	if errors.As(err, &refusal) {
		return refusal, true
	}
	return &internalError{}, false
}
