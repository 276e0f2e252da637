package view

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// asked finds the hash in a message of a manager, where it is before the first name of an object.
var asked = regexp.MustCompile(regexp.QuoteMeta(v1.AnnotationPruneApproved) + `: ([0-9a-f]{16})\b`)

// WaitingRemoval is the value of annotation prune-approved that an installation waits for, and the message about the objects; false: it
// waits for none.
func WaitingRemoval(one *v1.AddonInstallation) (value, message string, waits bool) {
	for _, condition := range []*metav1.Condition{
		Reported(one, v1.ConditionApplied, v1.ReasonPruneNeedsApproval), Reported(one, v1.ConditionRendered, v1.ReasonNoManifests),
	} {
		if condition == nil {
			continue
		}
		if found := asked.FindStringSubmatch(condition.Message); found != nil {
			return found[1], condition.Message, true
		}
	}
	return "", "", false
}

// ExistingObjects is the message about objects of others that an installation could adopt; false: it reports none.
func ExistingObjects(one *v1.AddonInstallation) (message string, reports bool) {
	for _, reason := range []string{v1.ReasonObjectExists, v1.ReasonReleaseNameTaken} {
		if applied := Reported(one, v1.ConditionApplied, reason); applied != nil {
			message, reports = applied.Message, true
		}
	}
	return message, reports
}

// Reported is a condition with this reason, or nil.
func Reported(one *v1.AddonInstallation, kind, reason string) *metav1.Condition {
	if found := meta.FindStatusCondition(one.Status.Conditions, kind); found != nil && found.Reason == reason {
		return found
	}
	return nil
}
