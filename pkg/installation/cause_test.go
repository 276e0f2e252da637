package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestWhatAClusterMayFailByItself turns red when a failure that the objects of an add-on cause is taken for the cluster's own, or one that
// any user of the cluster can cause for the add-on's.
func TestWhatAClusterMayFailByItself(t *testing.T) {
	const (
		half     = "1 of 2 objects are healthy; Deployment web/web: "
		cordoned = "pod web-1 is not scheduled (Unschedulable): 0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are " +
			"available: 1 Preemption is not helpful for scheduling."
		crashes = `pod web-1 crashes: container "web" ended with exit code 1 (Error), started 4 times (CrashLoopBackOff)`
		webhook = `the user cluster refuses ConfigMap web/web: admission webhook "policy.example.com" denied the request: no`
	)
	unhealthy := func(messages ...string) (found []v1.UnhealthyObject) {
		for i := 0; i < len(messages); i += 2 {
			found = append(found, v1.UnhealthyObject{Ref: "Deployment web/web", Reason: messages[i], Message: messages[i+1]})
		}
		return found
	}
	for _, test := range []struct {
		why, reason, message string
		objects              []v1.UnhealthyObject
		want                 string
	}{
		{"a cordoned node", v1.ReasonTimeout, half + cordoned, unhealthy("InProgress", cordoned), v1.ReasonUnschedulable},
		{"the same, past the Deployment's own deadline", v1.ReasonUnhealthy, half + cordoned, unhealthy("Failed", cordoned), v1.ReasonUnschedulable},
		{"beside a workload whose pods were not read", v1.ReasonUnhealthy, half + cordoned,
			unhealthy("Failed", cordoned, "Failed", "Progress deadline exceeded", "InProgress", "Available: 0/1"), v1.ReasonUnschedulable},
		{"beside one that crashes", v1.ReasonUnhealthy, half + cordoned, unhealthy("InProgress", cordoned, "Failed", crashes), ""},
		{"it crashes", v1.ReasonUnhealthy, half + crashes, unhealthy("Failed", crashes), ""},
		{"nodes are full", v1.ReasonTimeout, half, unhealthy("InProgress", "pod web-1 is not scheduled (Unschedulable): 0/2 nodes are available: "+
			"2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."), v1.ReasonUnschedulable},
		{"one is full, and one too small", v1.ReasonTimeout, half, unhealthy("InProgress", "pod web-1 is not scheduled (Unschedulable): 0/2 nodes are "+
			"available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "+
			"1 Preemption is not helpful for scheduling."), v1.ReasonUnschedulable},
		{"requests above any node", v1.ReasonTimeout, half, unhealthy("InProgress", "pod web-1 is not scheduled (Unschedulable): 0/2 nodes are available: "+
			"2 Insufficient cpu, 2 Insufficient memory. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."), ""},
		{"a quota", v1.ReasonUnhealthy, half, unhealthy("Failed", "no pod can be made: FailedCreate: exceeded quota: small"), v1.ReasonQuotaExceeded},
		{"a quota refuses an object", v1.ReasonObjectInvalid, `the user cluster refuses Service web/web: services "web" is forbidden: exceeded quota: small`,
			nil, v1.ReasonQuotaExceeded},
		{"a LimitRange", v1.ReasonUnhealthy, half, unhealthy("Failed", "no pod can be made: FailedCreate: maximum cpu usage per Container"), v1.ReasonLimitRange},
		{"somebody's webhook", v1.ReasonObjectInvalid, webhook, nil, v1.ReasonWebhookRefused},
		{"one that does not answer", v1.ReasonFailed, `applying "ConfigMap web/web": Internal error occurred: failed calling webhook "policy.example.com"`,
			nil, v1.ReasonWebhookRefused},
		{"the add-on's own", v1.ReasonObjectInvalid, webhook + OwnWebhook, nil, ""},
		{"what was healthy last does not count where nothing was applied", v1.ReasonObjectInvalid, webhook, unhealthy("Failed", crashes), v1.ReasonWebhookRefused},
		{"rolled back for it", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` + half + cordoned, nil, v1.ReasonUnschedulable},
		{"rolled back for something else", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` + half + crashes, nil, ""},
		{"a template is wrong", v1.ReasonRenderFailed, "web.yaml:3: no", nil, ""},
	} {
		live := &v1.AddonInstallation{Status: v1.AddonInstallationStatus{Unhealthy: test.objects, Conditions: []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: test.reason, Message: test.message,
		}}}}
		if got := StateOf(live, Pace{}, moved).Cause; got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}
