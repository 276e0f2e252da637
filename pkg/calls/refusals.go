package calls

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// refusals are the parts of messages about refused objects that can't hold a secret, with the reason that a cluster may have of its own for
// each. The first that is found counts.
var refusals = []struct {
	words *regexp.Regexp
	cause string
}{
	// Of a webhook the name alone, which stands before whatever it said of the object.
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

// Refusal says why the user cluster refuses something: in a text without secrets, and by the reason that it may have of its own, if any.
type Refusal struct{ Text, Cause string }

// PodRefusal is a reason why a Pod is not made, with the part of the message that can't hold a
// secret, or else a hint.
func PodRefusal(reason, message string) Refusal {
	excerpt := Excerpt(message)
	for _, one := range refusals {
		if found := one.words.FindString(excerpt); found != "" {
			return Refusal{ReasonWord(reason) + ": " + found, one.cause}
		}
	}
	return Refusal{Text: ReasonWord(reason) + "; its events say why"}
}

// CauseOf is the reason that a user cluster may have of its own for an answer; empty: none.
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
		return "no reason told"
	}
	return reason
}
