package query

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal is why a request gets no answer. Its text is sent to whoever asked.
type Refusal interface {
	error
	// Status is the HTTP status, Reason a word for programs.
	Status() int
	Reason() metav1.StatusReason
}

// UnauthenticatedError says that there is no valid token. It does not say what is wrong with it.
type UnauthenticatedError struct{}

func (*UnauthenticatedError) Error() string {
	return "send a valid token of the seed's API server: Authorization: Bearer <token>"
}

// Status is 401.
func (*UnauthenticatedError) Status() int { return http.StatusUnauthorized }

// Reason is Unauthorized.
func (*UnauthenticatedError) Reason() metav1.StatusReason { return metav1.StatusReasonUnauthorized }

// NotFoundError says that something is not there, or that the asker may not see it; it does not say which.
type NotFoundError struct{}

func (*NotFoundError) Error() string { return "there is nothing here that you may see" }

// Status is 404.
func (*NotFoundError) Status() int { return http.StatusNotFound }

// Reason is NotFound.
func (*NotFoundError) Reason() metav1.StatusReason { return metav1.StatusReasonNotFound }

// ParameterError says what is wrong with the request.
type ParameterError struct {
	// Parameter is its name; "body" and "query" stand for those as a whole.
	Parameter string
	// Problem says what is wrong and how to mend it.
	Problem string
}

func (e *ParameterError) Error() string { return fmt.Sprintf("%s: %s", e.Parameter, e.Problem) }

// Status is 400.
func (*ParameterError) Status() int { return http.StatusBadRequest }

// Reason is BadRequest.
func (*ParameterError) Reason() metav1.StatusReason { return metav1.StatusReasonBadRequest }

// TooLargeError says that the body is too large.
type TooLargeError struct {
	// Limit in bytes.
	Limit int64
}

func (e *TooLargeError) Error() string { return fmt.Sprintf("the body may have %d bytes", e.Limit) }

// Status is 413.
func (*TooLargeError) Status() int { return http.StatusRequestEntityTooLarge }

// Reason is RequestEntityTooLarge.
func (*TooLargeError) Reason() metav1.StatusReason { return metav1.StatusReasonRequestEntityTooLarge }

// MediaTypeError says that the body is of another type than JSON.
type MediaTypeError struct{}

func (*MediaTypeError) Error() string { return "send the body as application/json, or name no type" }

// Status is 415.
func (*MediaTypeError) Status() int { return http.StatusUnsupportedMediaType }

// Reason is UnsupportedMediaType.
func (*MediaTypeError) Reason() metav1.StatusReason { return metav1.StatusReasonUnsupportedMediaType }

// MethodError says that the path has other methods.
type MethodError struct {
	// Allowed methods.
	Allowed []string
}

func (e *MethodError) Error() string { return "use " + strings.Join(e.Allowed, " or ") }

// Status is 405.
func (*MethodError) Status() int { return http.StatusMethodNotAllowed }

// Reason is MethodNotAllowed.
func (*MethodError) Reason() metav1.StatusReason { return metav1.StatusReasonMethodNotAllowed }

// UnavailableError says that there is no answer at the moment.
type UnavailableError struct {
	// Problem is fit for whoever asks; the cause is not.
	Problem string
	err     error
}

func (e *UnavailableError) Error() string { return e.Problem + "; try again" }

// Unwrap gives the cause, for logs.
func (e *UnavailableError) Unwrap() error { return e.err }

// Status is 503.
func (*UnavailableError) Status() int { return http.StatusServiceUnavailable }

// Reason is ServiceUnavailable.
func (*UnavailableError) Reason() metav1.StatusReason { return metav1.StatusReasonServiceUnavailable }

// internalError stands for a defect of ours. What happened is logged and not sent.
type internalError struct{}

func (*internalError) Error() string {
	return "the request could not be answered; the manager's log says why"
}

func (*internalError) Status() int { return http.StatusInternalServerError }

func (*internalError) Reason() metav1.StatusReason { return metav1.StatusReasonInternalError }

// refusalOf is what is sent for an error; false where the error is none that was foreseen.
func refusalOf(err error) (Refusal, bool) {
	var refusal Refusal
	if errors.As(err, &refusal) {
		return refusal, true
	}
	return &internalError{}, false
}
