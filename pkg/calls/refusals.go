package calls

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsKindTrouble says that the API server can't answer for a kind that is not its own: the server behind an APIService or a
// conversion webhook is down. Other kinds are not held up by that.
func IsKindTrouble(kind schema.GroupKind, err error) bool {
	return IsCustom(kind) &&
		(apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err))
}

// IsNamespaceMissing says that a write was refused since there is no such namespace.
func IsNamespaceMissing(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &answer) && answer.Status().Details != nil &&
		answer.Status().Details.Kind == Namespaces.Resource
}

// MissingNamespace says so to people.
func MissingNamespace(name string) string {
	return fmt.Sprintf("namespace %q does not exist in the user cluster: make it there or, if it is the target namespace, set "+
		"createNamespace on the installation", name)
}

// IsRefusal says that the API server understood and does not want the object as it is.
func IsRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsUnsupportedMediaType(err) || apierrors.IsNotAcceptable(err)
}

// IsUnexplained says that the API server answers with an internal error and no reason. That is its answer to an object that
// does not fit its schema, and to any object while its etcd takes no more writes.
func IsUnexplained(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError &&
		answer.Status().Reason == metav1.StatusReasonUnknown
}

// IsReadable says by the error of a read whether what is behind the API server answers: then an internal error is the object's
// fault.
func IsReadable(err error) bool { return err == nil || apierrors.IsNotFound(err) }

// IsAnswer says whether an error was given by the API server, rather than by the way to it.
func IsAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}
