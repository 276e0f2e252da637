package apply_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// tries is a rollout of one change to a Deployment; it counts the writes and dry runs of each reconciliation.
func tries(l *lab.Lab, from, to string) func() (count int, progress apply.Progress) {
	l.Helper()
	known := l.Install(l.Prepare(lab.Deployment), nil)
	objects := l.Prepare(strings.Replace(lab.Deployment, from, to, 1))
	rollout := apply.NewRollout(l.Owner, objects, apply.Planned(objects, known), apply.RolloutOptions{})
	return func() (count int, progress apply.Progress) {
		l.Helper()
		return len(l.Calls.During("PATCH /apis/apps/v1/namespaces/"+l.Unique+"/deployments/web", func() {
			progress = lab.Must(rollout.Advance(l.Context(), l.Target))(l)
		})), progress
	}
}

// TestASearchThatFoundNothingIsNotRepeated fails if fields that are refused together are searched again although
// neither the refusal nor the object changed, and if they are not searched in a changed object.
func TestASearchThatFoundNothingIsNotRepeated(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	try := tries(l, "matchLabels: {app: web}", "matchLabels: {app: other}")
	first, progress := try()
	if first < 2 || len(progress.Refused) != 1 {
		t.Fatalf("%d tries, refused %v", first, progress.Refused)
	}
	if again, now := try(); again != 1 || len(now.Refused) != 1 || now.Refused[0] != progress.Refused[0] {
		t.Errorf("%d tries at the second time, refused %v", again, now.Refused)
	}
	l.Edit(lab.Deployments, "web", `{spec: {minReadySeconds: 3}}`)
	if again, _ := try(); again < 2 {
		t.Errorf("%d tries after a change of the object", again)
	}
}

// TestARefusalOfAPolicyIsSearchedAgain fails if a search is not repeated after the refusal of a policy, which may be
// temporary.
func TestARefusalOfAPolicyIsSearchedAgain(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	try := tries(l, "replicas: 1", "replicas: 9")
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	policies, bindings := group.WithResource("validatingadmissionpolicies"), group.WithResource("validatingadmissionpolicybindings")
	l.Create(policies, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME}, spec: {
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}]},
  validations: [{expression: object.spec.replicas < 5, message: too many}]}}`)
	l.Create(bindings, "", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}, spec: {
  policyName: NAME, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}}}`)
	withdraw := func() {
		for _, resource := range []schema.GroupVersionResource{bindings, policies} {
			_ = l.Others.Resource(resource).Delete(context.Background(), l.Unique, metav1.DeleteOptions{})
		}
	}
	t.Cleanup(withdraw)
	l.Eventually("the policy is in force", func() bool {
		_, err := l.Others.Resource(lab.Deployments).Namespace(l.Unique).Patch(t.Context(), "web", types.MergePatchType,
			[]byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	for range 2 {
		if count, progress := try(); count < 2 || len(progress.Refused) != 1 {
			t.Fatalf("%d tries, refused %v", count, progress.Refused)
		}
	}
	withdraw()
	l.Eventually("the change is written", func() bool { _, progress := try(); return progress.Complete })
}
