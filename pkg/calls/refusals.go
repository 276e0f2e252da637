package calls

import "regexp"

// podRefusals are the parts of messages about refused Pods that can't hold a secret.
var podRefusals = []*regexp.Regexp{
	// Of a webhook the name alone, which stands before whatever it said of the Pod.
	regexp.MustCompile(`^admission webhook "[a-z0-9.-]{1,100}" denied the request`),
	regexp.MustCompile(`^Internal error occurred: failed calling webhook "[a-z0-9.-]{1,100}"`),
	regexp.MustCompile(`violates PodSecurity "[a-z0-9.:]{1,40}"`),
	regexp.MustCompile(`ValidatingAdmissionPolicy '[a-z0-9.-]{1,100}' with binding '[a-z0-9.-]{1,100}' denied request`),
	regexp.MustCompile(`(?:exceeded|failed) quota: [a-z0-9.-]{1,100}`),
	regexp.MustCompile(`(?:max|min)imum [a-z0-9./-]{1,63} usage per (?:Container|Pod)`),
	regexp.MustCompile(`max limit to request ratio per (?:Container|Pod) is [0-9.]{1,20}`),
	regexp.MustCompile(`serviceaccount "[a-z0-9.-]{1,100}" not found`),
	regexp.MustCompile(`no PriorityClass with name [a-z0-9.-]{1,100} was found`),
}

// PodRefusal is a reason why a Pod is not made, with the part of the message that can't hold a
// secret, or else a hint.
func PodRefusal(reason, message string) string {
	return WithKnown(reason, message, podRefusals, "; its events say why")
}

// WithKnown is a reason with the first part of a message that is known to hold no secret; without
// one, with other words.
func WithKnown(reason, message string, known []*regexp.Regexp, otherwise string) string {
	for _, pattern := range known {
		if found := pattern.FindString(Excerpt(message)); found != "" {
			return ReasonWord(reason) + ": " + found
		}
	}
	return ReasonWord(reason) + otherwise
}

var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,63}$`)

// ReasonWord is a reason of a user cluster, if it is one word as reasons are.
func ReasonWord(reason string) string {
	if !reasonPattern.MatchString(reason) {
		return "no reason told"
	}
	return reason
}
