package calls

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// refusals are the parts of messages about refused objects that can't contain a secret, each with the cause in the user cluster, if it has
// one. The first match counts.
var refusals = []struct {
	words *regexp.Regexp
	cause string
}{
	// Of a webhook only the name, which is before its message about the object.
	{regexp.MustCompile(`^admission webhook "[a-z0-9.-]{1,100}" denied the request`), v1.ReasonWebhookRefused},
	{regexp.MustCompile(`^Internal error occurred: failed calling webhook "[a-z0-9.-]{1,100}"`), v1.ReasonWebhookRefused},
	{regexp.MustCompile(`violates PodSecurity "[a-z0-9.:]{1,40}"`), v1.ReasonPodSecurity},
	{regexp.MustCompile(`ValidatingAdmissionPolicy '[a-z0-9.-]{1,99}' with binding '[a-z0-9.-]{1,99}' denied request`), v1.ReasonPolicyDenied},
	{regexp.MustCompile(`(?:exceeded|failed) quota: [a-z0-9.-]{1,100}`), v1.ReasonQuotaExceeded},
	{regexp.MustCompile(`(?:max|min)imum [a-z0-9./-]{1,63} usage per (?:Container|Pod|PersistentVolumeClaim)`), v1.ReasonLimitRange},
	{regexp.MustCompile(`max limit to request ratio per (?:Container|Pod) is [0-9.]{1,20}`), v1.ReasonLimitRange},
	{regexp.MustCompile(`serviceaccount "[a-z0-9.-]{1,100}" not found`), ""},
	{regexp.MustCompile(`no PriorityClass with name [a-z0-9.-]{1,100} was found`), ""},
}

// Refusal says why the user cluster refuses something: Text has no secrets; Cause is the cause in the user cluster, if any.
type Refusal struct{ Text, Cause string }

// PodRefusal says why a Pod is not created, with the part of the message that can't contain a secret, or otherwise a
// hint.
func PodRefusal(reason, message string) Refusal {
	excerpt := Excerpt(message)
	for _, one := range refusals {
		if found := one.words.FindString(excerpt); found != "" {
			return Refusal{ReasonWord(reason) + ": " + found, one.cause}
		}
	}
	return Refusal{Text: ReasonWord(reason) + "; its events say why"}
}

// CauseOf is the cause in the user cluster of an answer; empty: none.
func CauseOf(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	return PodRefusal("", answer.Status().Message).Cause
}

var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// ReasonWord is a reason of a user cluster, if it is one word as reasons are.
func ReasonWord(reason string) string {
	if !reasonPattern.MatchString(reason) {
		return "no reason given"
	}
	return reason
}
