package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Paths of the webhooks, below the gate's path.
const (
	PathCatalogues    = "/validate-addoncatalogue"
	PathInstallations = "/validate-addoninstallation"
	PathSets          = "/validate-addonset"
)

var paths = map[string]string{
	"addoncatalogues.addons.kubermatic.k8c.io": PathCatalogues, "addoninstallations.addons.kubermatic.k8c.io": PathInstallations,
	"addonsets.addons.kubermatic.k8c.io": PathSets,
}

// change has no before at a creation, and no after at a deletion.
type change[T any] struct{ before, after *T }

// decode reads the objects of a request, which the API server checked against the schema.
func decode[T any](request admission.Request) (change[T], error) {
	var found change[T]
	for _, side := range []struct {
		raw  []byte
		into **T
	}{{request.OldObject.Raw, &found.before}, {request.Object.Raw, &found.after}} {
		if len(side.raw) == 0 {
			continue
		}
		*side.into = new(T)
		if err := json.Unmarshal(side.raw, *side.into); err != nil {
			return change[T]{}, fmt.Errorf("the %s %q does not have the fields of its kind", request.Kind.Kind, request.Name) // without values
		}
	}
	return found, nil
}

// name names the object in messages.
func name(request admission.Request, object metav1.Object) string {
	return fmt.Sprintf("%s %q", request.Kind.Kind, request.Namespace+"/"+ownName(object))
}

// ownName is the object's name. Of a generated name only the prefix is known.
func ownName(object metav1.Object) string {
	if object.GetName() == "" {
		return object.GetGenerateName() + "…"
	}
	return object.GetName()
}

// atField is a problem that begins with the path of a field in the spec.
var atField = regexp.MustCompile(`(?s)^(spec[^\s:]*): (.+)$`)

// invalid refuses an object. kubectl prints only the cause, or the whole message with the patch if there is no cause.
func invalid(request admission.Request, object metav1.Object, problem error) admission.Response {
	cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: problem.Error()}
	if match := atField.FindStringSubmatch(cause.Message); match != nil {
		cause.Field, cause.Message = match[1], match[2]
	}
	answer := refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf("%s: %v", name(request, object), problem))
	answer.Result.Details = &metav1.StatusDetails{
		Name: ownName(object), Group: request.Kind.Group, Kind: request.Kind.Kind, Causes: []metav1.StatusCause{cause},
	}
	return answer
}

func forbidden(message string) admission.Response {
	return refused(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func refused(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}

func allowed(warnings ...string) admission.Response {
	return admission.Allowed("").WithWarnings(warnings...)
}
