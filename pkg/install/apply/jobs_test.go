package apply_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

var (
	jobs           = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	policies       = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	policyBindings = schema.GroupVersionResource{Group: policies.Group, Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

// withTTL is the lab's Job with these fields in its spec and labels.
func withTTL(seconds, labels string) string {
	text := strings.Replace(lab.Job, "spec:", "spec:\n  ttlSecondsAfterFinished: "+seconds, 1)
	return strings.Replace(text, "name: once}", "name: once, labels: {"+labels+"}}", 1)
}

// ended waits until the Job completed, and returns the inventory with its end.
func ended(l *lab.Lab, inventory ownership.Inventory) ownership.Inventory {
	l.Helper()
	var finished []ownership.Key
	l.Eventually("the Job ends", func() bool {
		finished = l.Assess(inventory).Finished
		return len(finished) == 1
	})
	return inventory.Finish(finished)
}

func hasTTL(live *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished")
	return found
}

// TestAJobGetsItsTimeBehindItsEnd fails if a Job is written with a time to live that may delete it before its end is
// seen; if it does not get the time after its end, or gets it twice; if a write, a repair or the time itself runs it
// again; and if a change of its labels counts as a Job that did not run.
func TestAJobGetsItsTimeBehindItsEnd(t *testing.T) {
	for _, seconds := range []string{"0", "1", "1.5", "4294967296", "3600"} {
		t.Run(seconds, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := ended(l, l.Install(l.Prepare(withTTL(seconds, "")), nil))
			inventory = l.Update(withTTL(seconds, "a: b"), inventory)
			live := l.Get(jobs, l.Unique, "once")
			if live == nil || hasTTL(live) || live.GetLabels()["a"] != "b" || !inventory[0].Finished {
				t.Fatalf("the Job is %v, its entry %+v", live, inventory[0])
			}
			given, refused, err := apply.GiveTTL(t.Context(), l.Target, l.Owner, inventory.Ended())
			if err != nil || len(refused) > 0 || len(given) != 1 {
				t.Fatalf("given %v, refused %v, %v", given, refused, err)
			}
			inventory = inventory.WithoutTTL(given)
			if seconds == "3600" {
				if live = l.Get(jobs, l.Unique, "once"); live == nil || !hasTTL(live) || len(inventory.Ended()) > 0 || len(l.Drift(inventory)) > 0 {
					t.Errorf("the Job is %v, drift %v", live, l.Drift(inventory))
				}
				return
			}
			l.Eventually("the Job is gone", func() bool { return l.Get(jobs, l.Unique, "once") == nil })
			if drift := l.Drift(inventory); len(drift) > 0 {
				t.Errorf("its end is drift: %v", drift)
			}
			objects := l.Prepare(withTTL(seconds, "a: b"))
			l.Install(objects, inventory.Unconfirmed())
			apply.Repair(t.Context(), l.Target, l.Owner, []ownership.Key{inventory[0].Key}, apply.Applied{Objects: objects, Inventory: inventory})
			given, refused, err = apply.GiveTTL(t.Context(), l.Target, l.Owner, ownership.Inventory{{
				Key: inventory[0].Key, UID: inventory[0].UID, Version: "v1", Finished: true, TTL: new(int64),
			}})
			if err != nil || len(refused) > 0 || len(given) != 1 || l.Get(jobs, l.Unique, "once") != nil {
				t.Errorf("given %v, refused %v, %v; the Job is %v", given, refused, err, l.Get(jobs, l.Unique, "once"))
			}
		})
	}
}

// TestAWrongTimeOfAJobIsRefused fails if a time to live that the API server refuses is removed, so that the Job is no
// longer refused.
func TestAWrongTimeOfAJobIsRefused(t *testing.T) {
	for _, seconds := range []string{"-1", "4294967295", `"soon"`} {
		l := lab.New(t)
		l.Namespace()
		progress := l.Rollout(l.Prepare(withTTL(seconds, "")), nil, apply.RolloutOptions{})
		if want := []string{"Job once: ObjectInvalid"}; !slices.Equal(lab.Reasons(progress.Refused), want) {
			t.Errorf("%s: refused %v", seconds, progress.Refused)
		}
	}
}

// TestAJobWhoseTimeIsRefusedIsReported fails if a user cluster that refuses the time to live is called forever, or its text
// is repeated.
func TestAJobWhoseTimeIsRefusedIsReported(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := ended(l, l.Install(l.Prepare(withTTL("0", "")), nil))
	l.Create(policies, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME}, spec: {`+
		`matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}, resourceRules: [{apiGroups: [batch], apiVersions: [v1], `+
		`operations: [UPDATE], resources: [jobs]}]}, validations: [{expression: "false", message: secret words}]}}`)
	l.Create(policyBindings, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}, `+
		`spec: {policyName: NAME, validationActions: [Deny]}}`)
	l.Eventually("the policy is in force", func() bool { return l.TryEdit(jobs, "once", `{metadata: {labels: {a: b}}}`) != nil })
	given, refused, err := apply.GiveTTL(t.Context(), l.Target, l.Owner, inventory.Ended())
	if err != nil || len(given) > 0 || len(refused) != 1 || refused[0].Message != "the API server answers with code 422" {
		t.Errorf("given %v, refused %v, %v", given, refused, err)
	}
}
