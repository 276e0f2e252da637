package survey

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// TestWhyAClusterDoesNotScheduleAPod fails if requests above any node are not distinguished from nodes that are full or
// cordoned, also if other text of the scheduler precedes the end, and if a reason that the scheduler does not have
// becomes a cause.
func TestWhyAClusterDoesNotScheduleAPod(t *testing.T) {
	for why, test := range map[string]struct{ reason, message, want string }{
		"a cordoned node": {corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are " +
			"available: 1 Preemption is not helpful for scheduling.", v1.ReasonUnschedulable},
		"nodes are full": {corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: " +
			"2 No preemption victims found for incoming pod.", v1.ReasonUnschedulable},
		"one is full, and one too small": {corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are " +
			"available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.", v1.ReasonUnschedulable},
		"requests above any node": {corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. " +
			"preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", v1.ReasonRequestsTooLarge},
		"of several resources": {corev1.PodReasonUnschedulable, "0/100 nodes are available: 100 Insufficient cpu, 100 Insufficient memory, " +
			"100 Insufficient example.com/accelerator. no new claims to deallocate, preemption: 0/100 nodes are available: " +
			"100 Preemption is not helpful for scheduling.", v1.ReasonRequestsTooLarge},
		"a gate":         {corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates", v1.ReasonSchedulingGated},
		"another reason": {"QuotaExceeded", "0/1 nodes are available", ""},
	} {
		if got := unscheduledBy(corev1.PodCondition{Reason: test.reason, Message: test.message}); got != test.want {
			t.Errorf("%s: %q, want %q", why, got, test.want)
		}
	}
}

// TestOneObjectThatFailedForAnotherReasonLeavesNoCause fails if one object's cause excuses another failed object of the
// add-on, and if a workload whose pods were not read gets a cause.
func TestOneObjectThatFailedForAnotherReasonLeavesNoCause(t *testing.T) {
	cordoned := calls.Note{Reason: "InProgress", Message: "is not scheduled", Cause: v1.ReasonUnschedulable}
	refused := calls.Note{Reason: "Failed", Message: "no pod can be created", Cause: v1.ReasonQuotaExceeded}
	crashes, starts := calls.Note{Reason: "Failed", Message: "crashes"}, calls.Note{Reason: "InProgress", Message: "Available: 0/1"}
	unread := calls.Note{Reason: "Failed", Message: "Progress deadline exceeded"}
	for why, test := range map[string]struct {
		notes []calls.Note
		want  string
	}{
		"nothing":                 {nil, ""},
		"a cordoned node":         {[]calls.Note{starts, cordoned}, v1.ReasonUnschedulable},
		"a quota":                 {[]calls.Note{refused, cordoned}, v1.ReasonQuotaExceeded},
		"beside one that crashes": {[]calls.Note{refused, cordoned, crashes}, ""},
		"beside one of which the pods were not read": {[]calls.Note{refused, unread}, v1.ReasonQuotaExceeded},
		"it crashes": {[]calls.Note{crashes}, ""},
	} {
		if got := (Health{Unhealthy: test.notes}).Cause(); got != test.want {
			t.Errorf("%s: %q, want %q", why, got, test.want)
		}
	}
}
