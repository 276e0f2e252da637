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
			"2 Insufficient cpu, 2 Insufficient memory. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."),
			v1.ReasonRequestsTooLarge},
		{"a gate", v1.ReasonTimeout, half, unhealthy("InProgress", "pod web-1 is not scheduled (SchedulingGated): Scheduling is blocked due to "+
			"non-empty scheduling gates"), v1.ReasonSchedulingGated},
		{"a quota", v1.ReasonUnhealthy, half, unhealthy("Failed", "no pod can be made: FailedCreate: exceeded quota: small"), v1.ReasonQuotaExceeded},
		{"a quota refuses an object", v1.ReasonObjectInvalid, `the user cluster refuses Service web/web: services "web" is forbidden: exceeded quota: small`,
			nil, v1.ReasonQuotaExceeded},
		{"a LimitRange", v1.ReasonUnhealthy, half, unhealthy("Failed", "no pod can be made: FailedCreate: maximum cpu usage per Container"), v1.ReasonLimitRange},
		{"somebody's webhook", v1.ReasonObjectInvalid, webhook, nil, v1.ReasonWebhookRefused},
		{"one that does not answer", v1.ReasonFailed, `applying "ConfigMap web/web": Internal error occurred: failed calling webhook "policy.example.com"`,
			nil, v1.ReasonWebhookRefused},
		{"a quota for what the pods don't ask for", v1.ReasonUnhealthy, half,
			unhealthy("Failed", "no further pod can be made: FailedCreate: failed quota: small"), v1.ReasonQuotaExceeded},
		{"a ratio", v1.ReasonUnhealthy, half,
			unhealthy("Failed", "no pod can be made: FailedCreate: max limit to request ratio per Container is 2"), v1.ReasonLimitRange},
		{"a standard of pods", v1.ReasonUnhealthy, half,
			unhealthy("Failed", `no pod can be made: FailedCreate: violates PodSecurity "restricted:latest"`), v1.ReasonPodSecurity},
		{"a policy", v1.ReasonObjectInvalid, "the user cluster refuses Service web/web: services \"web\" is forbidden: " +
			"ValidatingAdmissionPolicy 'none' with binding 'all' denied request: no", nil, v1.ReasonPolicyDenied},
		{"an object that he made first", v1.ReasonObjectExists, `ConfigMap web/new exists already and belongs to field manager "kubectl": delete it`,
			nil, v1.ReasonObjectOfOthers},
		{"one that an installation left", v1.ReasonObjectExists, "ConfigMap web/new exists already: add-on installation with id x left it there",
			nil, v1.ReasonObjectOfOthers},
		{"a field that he holds", v1.ReasonConflict, `ConfigMap web/web: field .data.key belongs to "kubectl": take it out of the add-on`,
			nil, v1.ReasonFieldOfOthers},
		{"a namespace that does not go", v1.ReasonNamespaceTerminating, `namespace "web" is being deleted; held by finalizer example.com/mine`,
			nil, v1.ReasonBeingDeleted},
		{"what was healthy last does not count where nothing was applied", v1.ReasonObjectInvalid, webhook, unhealthy("Failed", crashes), v1.ReasonWebhookRefused},
		{"rolled back for it", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` + half + cordoned, nil, v1.ReasonUnschedulable},
		{"rolled back for something else", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` + half + crashes, nil, ""},
		{"rolled back for something else, and cordoned now", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` + half + crashes +
			"; now " + half + cordoned, nil, ""},
		{"rolled back for an object that he made first", v1.ReasonRolledBack, `upgrade to version "2" failed; it failed: ` +
			"it was not applied in time: Secret web/new exists already and belongs to an unknown owner: delete it", nil, v1.ReasonObjectOfOthers},
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
