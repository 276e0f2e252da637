package calls

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// wordLimit is the longest text from a user cluster inside one of our sentences, in bytes.
const wordLimit = 200

// CausesOf are the causes that a refusal names; an API server can send any number.
func CausesOf(err error) []metav1.StatusCause {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}

// ConflictingFields are the fields of a conflict, each once; none if it is about the UID.
func ConflictingFields(err error) (fields []string) {
	seen := map[string]bool{}
	for _, cause := range CausesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict && !seen[cause.Field] {
			seen[cause.Field] = true
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// phrase joins texts for one of our sentences, up to the length that is shown.
type phrase struct{ strings.Builder }

func (p *phrase) add(separator, word string, limit int) bool {
	if p.Len() > 0 {
		p.WriteString(separator)
	}
	p.WriteString(word[:min(len(word), limit)])
	return p.Len() <= limit
}

// excerptLimit bounds foreign texts, in bytes; half of their characters may not be shown.
const excerptLimit = 2 * wordLimit

// Excerpt is the beginning of a foreign text, which may be as long as an answer.
func Excerpt(word string) string { return word[:min(len(word), excerptLimit)] }

// CutText makes a text from a user cluster fit for one of our sentences.
func CutText(word string) string { return text.Cut(text.Line(Excerpt(word)), wordLimit) }

// HeldBy names the finalizers that delay an object's end.
func HeldBy(finalizers []string) string {
	var names phrase
	for _, name := range finalizers {
		if !names.add(", ", name, excerptLimit) {
			break
		}
	}
	if len(finalizers) == 0 {
		return ""
	}
	return "; blocked by finalizer " + CutText(names.String())
}

// IsKindTrouble says that the server behind an APIService or a conversion webhook is down.
func IsKindTrouble(kind schema.GroupKind, err error) bool {
	return IsCustom(kind) &&
		(apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err))
}

// IsNamespaceMissing says that a write was refused because its namespace does not exist.
func IsNamespaceMissing(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &answer) && answer.Status().Details != nil &&
		answer.Status().Details.Kind == Namespaces.Resource
}

// MissingNamespace is the message for users about it.
func MissingNamespace(name string) string {
	return fmt.Sprintf("namespace %q does not exist in the user cluster: create it there or, if it is the target namespace, set "+
		"createNamespace on the installation", name)
}

// IsRefusal says that the API server understood the object, and refuses it.
func IsRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsUnsupportedMediaType(err) || apierrors.IsNotAcceptable(err)
}

// IsUnexplained says that it is an internal error without a reason. The API server answers that to an object that
// does not fit its schema, and to any object while its etcd accepts no writes.
func IsUnexplained(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError &&
		answer.Status().Reason == metav1.StatusReasonUnknown
}

// IsReadable says by a read's error whether etcd works: if it does, the object causes a refusal.
func IsReadable(err error) bool { return err == nil || apierrors.IsNotFound(err) }

// Said is an error for the log, without text of an answer, which may quote any secret of the user cluster.
func Said(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return fmt.Sprintf("the API server answers with code %d", answer.Status().Code)
	}
	return err.Error()
}

// Unquoted is an error for users, without text of an answer, which may quote what was sent.
func Unquoted(err error) string {
	switch {
	case IsAnswer(err):
		return Said(err)
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time"
	}
	return "the API server gave an unexpected answer"
}

// IsAnswer says whether the API server itself sent the error, and not the network.
func IsAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}
