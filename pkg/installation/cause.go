package installation

import (
	"cmp"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// causes are reasons that a cluster may have of its own, by the words that messages have for them: pkg/survey, pkg/apply and pkg/calls
// write these. The first that is found counts.
var causes = []struct {
	words *regexp.Regexp
	cause string
}{
	{tooLarge, v1.ReasonRequestsTooLarge},
	{regexp.MustCompile(`is not scheduled \(Unschedulable\)`), v1.ReasonUnschedulable},
	{regexp.MustCompile(`is not scheduled \(SchedulingGated\)`), v1.ReasonSchedulingGated},
	{regexp.MustCompile(`(?:exceeded|failed) quota: `), v1.ReasonQuotaExceeded},
	{regexp.MustCompile(limitRange), v1.ReasonLimitRange},
	{regexp.MustCompile(`violates PodSecurity "`), v1.ReasonPodSecurity},
	{regexp.MustCompile(`ValidatingAdmissionPolicy '[^']+' with binding '[^']+' denied request`), v1.ReasonPolicyDenied},
	{regexp.MustCompile(`admission webhook "[^"]+" denied the request|failed calling webhook "`), v1.ReasonWebhookRefused},
	{regexp.MustCompile(` exists already(?: and belongs to |: add-on installation with id )`), v1.ReasonObjectOfOthers},
	{regexp.MustCompile(`: field .* belongs to `), v1.ReasonFieldOfOthers},
	{regexp.MustCompile(` is being deleted`), v1.ReasonBeingDeleted},
}

// tooLarge are the scheduler's words for requests above any node: no node lacks anything but room, and preemption helps on none.
var tooLarge = regexp.MustCompile(`is not scheduled \(Unschedulable\): 0/\d+ nodes are available: ` +
	`(?:\d+ Insufficient [^ ,]+, )*\d+ Insufficient [^ ,]+\. ` +
	`.*preemption: 0/\d+ nodes are available: \d+ Preemption is not helpful for scheduling\.`)

const (
	limitRange = `(?:max|min)imum [a-z0-9./-]+ usage per (?:Container|Pod|PersistentVolumeClaim)|` +
		`max limit to request ratio per (?:Container|Pod) is `
	// whatIsNow begins what an installation that was rolled back says of what it has now, which is no reason of the failure.
	whatIsNow = "; now "
)

// hasFailed is the reason of an object that does not get well by waiting, deadlineExceeded the message of a workload whose pods are not
// read, since those of others were.
const (
	hasFailed        = "Failed"
	deadlineExceeded = "Progress deadline exceeded"
)

// causeOf says for which reason of its own a cluster may have failed with an installation; empty: for none, so it is the revision's. One
// object that failed for another reason is enough for that.
func causeOf(live *v1.AddonInstallation, ready *metav1.Condition) string {
	message := ready.Message
	if ready.Reason == v1.ReasonRolledBack {
		message, _, _ = strings.Cut(message, whatIsNow)
	}
	said := causeIn(message)
	if !isOfHealth[ready.Reason] {
		return said
	}
	for i := range live.Status.Unhealthy {
		object := &live.Status.Unhealthy[i]
		cause := causeIn(object.Message)
		if cause == "" && object.Reason == hasFailed && object.Message != deadlineExceeded {
			return ""
		}
		said = cmp.Or(said, cause)
	}
	return said
}

// isOfHealth has the reasons of Ready that tell of the objects in status.unhealthy.
var isOfHealth = map[string]bool{v1.ReasonUnhealthy: true, v1.ReasonTimeout: true, v1.ReasonProgressing: true}

func causeIn(message string) string {
	for _, one := range causes {
		if one.words.MatchString(message) {
			return one.cause
		}
	}
	return ""
}
