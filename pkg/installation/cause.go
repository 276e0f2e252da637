package installation

import (
	"cmp"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// OwnWebhook ends the message of an installation whose own webhook refuses something: that is no reason of the cluster's own.
const OwnWebhook = "; the webhook is the add-on's own"

// causes are reasons that a cluster may have of its own, by the words that messages have for them: pkg/survey and pkg/calls write these.
var causes = []struct {
	words *regexp.Regexp
	cause string
}{
	{regexp.MustCompile(`is not scheduled \(Unschedulable\)`), v1.ReasonUnschedulable},
	{regexp.MustCompile(`exceeded quota: `), v1.ReasonQuotaExceeded},
	{regexp.MustCompile(`(?:max|min)imum [a-z0-9./-]+ usage per (?:Container|Pod|PersistentVolumeClaim)`), v1.ReasonLimitRange},
	{regexp.MustCompile(`admission webhook "[^"]+" denied the request|failed calling webhook "`), v1.ReasonWebhookRefused},
}

// tooLarge are the scheduler's words for requests above any node: no node lacks anything but room, and none would have it if it were empty.
var tooLarge = regexp.MustCompile(`: 0/(\d+) nodes are available: (?:\d+ Insufficient [^ ,]+, )*\d+ Insufficient [^ ,]+\. ` +
	`.*preemption: 0/\d+ nodes are available: (\d+) Preemption is not helpful for scheduling\.`)

// hasFailed is the reason of an object that does not get well by waiting, deadlineExceeded the message of a workload whose pods are not read,
// since those of others were.
const (
	hasFailed        = "Failed"
	deadlineExceeded = "Progress deadline exceeded"
)

// causeOf says for which reason of its own a cluster may have failed with an installation; empty: for none, so it is the revision's. One
// object that failed for another reason is enough for that.
func causeOf(live *v1.AddonInstallation, ready *metav1.Condition) string {
	said := causeIn(ready.Message)
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
			return blameless(one.cause, message)
		}
	}
	return ""
}

// blameless is a cause, unless the message tells that objects of the revision are behind it.
func blameless(cause, message string) string {
	sizes := tooLarge.FindStringSubmatch(message)
	isOwn := strings.HasSuffix(message, OwnWebhook)
	if cause == v1.ReasonUnschedulable && sizes != nil && sizes[1] == sizes[2] || cause == v1.ReasonWebhookRefused && isOwn {
		return ""
	}
	return cause
}
