package endtoend_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

const (
	// byToken, byCertificate and unasked are what the agent of these tests has access by: somebody approves the second, the manager the last.
	byToken, byCertificate, unasked = "hub", "signed", "unasked"
	// handedOut is why nobody uses a right that the manager has to have.
	handedOut = "the manager hands it out to agents, which it may only as long as it has it: testAgents here"
)

// approves are the signers for which the managers of these tests approve.
var approves = []any{kubermaticv1.SignerAPIServer}

// agents is the story of an add-on with access to its seed: by a token, with an outbox, and by certificates.
type agents struct {
	t *testing.T
	// home has the folders that agents log in with, until it ends.
	home       *testing.T
	box        *sandbox.Sandbox
	seed, user client.Client
	// on is the user cluster; namespace is the cluster's on its seed, and elsewhere one of others.
	on                   sandbox.UserCluster
	namespace, elsewhere string
	installed            *kubermaticv1.AddonInstallation
	// secrets are texts of all credentials that were seen.
	secrets canaries
}

func agentsOf(t *testing.T, box *sandbox.Sandbox, on sandbox.UserCluster, elsewhere string) *agents {
	return &agents{
		t: t, home: t, box: box, seed: box.Client(on.Seed), user: box.Client(on.Name), on: on, namespace: on.Namespace(), elsewhere: elsewhere,
	}
}

// AG02, AG05, AG06, AG07, AG09, AG10, AG11, AG18: Under the chart's rights and policies an agent logs in, by a certificate that the
// manager approves too, is rotated and leaves nothing. Red where one of them does not hold, and where the manager lacks a right for any of
// it.
func testAgents(t *testing.T, box *sandbox.Sandbox) {
	a := agentsOf(t, box, cluster, sandbox.UserClusters()[1].Namespace())
	a.talkative(cluster.Seed + " --v=6\n")
	catalogue := a.publish(byCertificate, unasked)
	rights := &rbacv1.ClusterRole{}
	expect.NoError(t, box.Manifest("agent-rights.yaml", rights))
	a.installed = newInstallation("agent", "agent")
	expect.Ensure(t, a.seed, a.installed.DeepCopy())
	a.awaits(kubermaticv1.ReasonRightsRefused, "get configmaps of the core group")
	a.expectNothing()
	expect.Ensure(t, a.seed, rights.DeepCopy())
	a.approve()
	ready(t, a.seed, a.installed)

	token, certificate, other := a.agent(byToken), a.agent(byCertificate), a.agent(unasked)
	a.expectRightsOf(token, byToken)
	a.expectRightsOf(certificate, byCertificate)
	a.expectRightsOf(other, unasked)
	a.reports(token)
	a.putBack()
	a.rotates(token, certificate, other)
	a.expectApproved()
	a.listShrinks(rights, a.agent(byToken), a.agent(byCertificate), a.agent(unasked))
	a.expectNoCanary()
	a.removed()
	expect.NoError(t, errors.Join(a.seed.Delete(t.Context(), rights), box.Client(sandbox.Master).Delete(t.Context(), catalogue)))
	expect.Gone(t, a.seed, merged("agent"))
}

// talkative has the seed's manager start again with further flags, which its next start has no more.
func (a *agents) talkative(flags string) {
	a.t.Helper()
	path := a.box.Folder + "/flags"
	before, err := os.ReadFile(path)
	expect.NoError(a.t, err)
	expect.NoError(a.t, os.WriteFile(path, append(slices.Clone(before), flags...), 0o600))
	a.box.Manager(cluster.Seed).Process().Kill()
	a.t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0o600); err != nil {
			a.t.Error(err)
		}
		a.box.Manager(cluster.Seed).Process().Kill()
	})
}

// publish offers the sample, which has an outbox here, and certificates besides.
func (a *agents) publish(certificates ...string) *kubermaticv1.AddonCatalogue {
	a.t.Helper()
	catalogue := &kubermaticv1.AddonCatalogue{}
	expect.NoError(a.t, a.box.Manifest("agent-catalogue.yaml", catalogue))
	template := catalogue.Spec.Addons[0].Versions[0].Template
	template.Access[0].Outbox = true
	approval := map[string]kubermaticv1.AccessApproval{byCertificate: kubermaticv1.ApprovalManual, unasked: kubermaticv1.ApprovalAutomatic}
	for _, name := range certificates {
		template.Access = append(template.Access, kubermaticv1.Access{
			Name: name, Type: kubermaticv1.AccessByCertificate, Approval: approval[name],
			Rules: []kubermaticv1.AccessRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		})
	}
	expect.Ensure(a.t, a.box.Client(sandbox.Master), catalogue)
	return catalogue
}

// awaits holds that AccessReady is False and says why.
func (a *agents) awaits(reason, words string) {
	a.t.Helper()
	expect.Object(a.t, a.seed, a.installed.DeepCopy(), func(found *kubermaticv1.AddonInstallation) error {
		if err := expect.Condition(found, kubermaticv1.ConditionAccessReady, "False", reason); err != nil {
			return err
		}
		if said := meta.FindStatusCondition(found.Status.Conditions, kubermaticv1.ConditionReady).Message; !strings.Contains(said, words) {
			return fmt.Errorf("Ready says %q, want %q", said, words)
		}
		return nil
	})
}

// approve approves the request that is waited for.
func (a *agents) approve() {
	a.t.Helper()
	a.awaits(kubermaticv1.ReasonApprovalRequired, "kubectl certificate approve addon-access-")
	found := a.installed.DeepCopy()
	expect.Read(a.t, a.seed, found)
	request := &certificatesv1.CertificateSigningRequest{}
	at := slices.IndexFunc(found.Status.Access, func(one kubermaticv1.AccessState) bool { return one.Name == byCertificate })
	expect.Get(a.t, a.seed, client.ObjectKey{Name: found.Status.Access[at].Request}, request)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Looked", Message: "it was looked at",
	}}
	expect.NoError(a.t, a.seed.SubResource("approval").Update(a.t.Context(), request))
}

// expectApproved holds that the manager approved what it may, and nothing that somebody has to look at. Nobody else approves the former.
func (a *agents) expectApproved() {
	a.t.Helper()
	requests := &certificatesv1.CertificateSigningRequestList{}
	expect.List(a.t, a.seed, requests, client.HasLabels{kubermaticv1.LabelAccess})
	approved := 0
	for _, request := range requests.Items {
		if request.Annotations[kubermaticv1.AnnotationAccessOf] != a.installed.Name {
			continue
		}
		for _, condition := range request.Status.Conditions {
			if condition.Type != certificatesv1.CertificateApproved || condition.Reason != "AddonAccess" {
				continue
			}
			approved++
			want := fmt.Sprintf("access %q of installation %q in namespace %q", unasked, a.installed.Name, a.namespace)
			if condition.Message != want || len(request.Status.Certificate) == 0 {
				a.t.Errorf("the manager approved %q, and says %q, want %q", request.Name, condition.Message, want)
			}
		}
	}
	if approved == 0 {
		a.t.Error("the manager approved nothing")
	}
}

// putBack has somebody edit what was made for the agent, and delete some of it.
func (a *agents) putBack() {
	a.t.Helper()
	name := metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-agent-" + a.installed.Name + "-" + byToken}
	for _, edited := range []struct {
		object client.Object
		patch  string
		isBack func(client.Object) bool
	}{
		{
			&rbacv1.Role{ObjectMeta: name}, `{"rules":[{"apiGroups":[""],"resources":["events"],"verbs":["list"]}]}`,
			func(o client.Object) bool { return len(o.(*rbacv1.Role).Rules) == 3 },
		},
		{
			&rbacv1.RoleBinding{ObjectMeta: name}, `{"subjects":null}`,
			func(o client.Object) bool { return len(o.(*rbacv1.RoleBinding).Subjects) == 1 },
		},
		{
			&corev1.ServiceAccount{ObjectMeta: name}, `{"automountServiceAccountToken":true}`,
			func(o client.Object) bool { return !*o.(*corev1.ServiceAccount).AutomountServiceAccountToken },
		},
	} {
		expect.Object(a.t, a.seed, edited.object, func(client.Object) error { return nil }) // who has a Role with more loses it first
		expect.Merge(a.t, a.seed, edited.object, []byte(edited.patch))
		expect.Object(a.t, a.seed, edited.object, func(found client.Object) error {
			if !edited.isBack(found) {
				return fmt.Errorf("it is as somebody edited it: %v", found)
			}
			return nil
		})
	}
	role := &rbacv1.Role{ObjectMeta: name}
	expect.Delete(a.t, a.seed, role)
	expect.Object(a.t, a.seed, &rbacv1.Role{ObjectMeta: name}, func(*rbacv1.Role) error { return nil })
	stolen := &corev1.Secret{ObjectMeta: a.given(byToken)}
	expect.Delete(a.t, a.user, stolen)
	a.agent(byToken)
}

// rotates has all credentials made anew, by a manager that is killed meanwhile. Those from before are worth nothing.
func (a *agents) rotates(token client.Client, certificates ...client.Client) {
	a.t.Helper()
	a.rotateAt("first")
	a.box.Manager(cluster.Seed).Process().Kill()
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsUnauthorized, a.list(token, a.namespace)) })
	for _, certificate := range certificates {
		expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsForbidden, a.list(certificate, a.namespace)) })
	}
	a.approve()
	ready(a.t, a.seed, a.installed)
	for _, access := range []string{byToken, byCertificate, unasked} {
		expect.Eventually(a.t, expect.Patience, func() error { return a.list(a.agent(access), a.namespace) })
	}
}

func (a *agents) rotateAt(value string) {
	a.t.Helper()
	expect.Annotate(a.t, a.seed, a.installed.DeepCopy(), kubermaticv1.AnnotationRotateAt, value)
}

func unless(is func(error) bool, err error) error {
	if is(err) {
		return nil
	}
	return fmt.Errorf("it got: %v", err)
}

// listShrinks takes all from the list, and gives it back.
func (a *agents) listShrinks(rights *rbacv1.ClusterRole, had ...client.Client) {
	a.t.Helper()
	expect.Delete(a.t, a.seed, rights.DeepCopy())
	for _, agent := range had {
		expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsForbidden, a.list(agent, a.namespace)) })
	}
	a.awaits(kubermaticv1.ReasonRightsRefused, "configmaps of the core group")
	pods := &corev1.PodList{}
	if err := a.user.List(a.t.Context(), pods, client.InNamespace("agent")); err != nil || len(pods.Items) == 0 {
		a.t.Errorf("%d pods of the agent are there: %v", len(pods.Items), err)
	}
	expect.Ensure(a.t, a.seed, rights.DeepCopy())
	ready(a.t, a.seed, a.installed)
	for _, agent := range had {
		expect.Eventually(a.t, expect.Patience, func() error { return a.list(agent, a.namespace) })
	}
}

// removed removes the add-on while a request waits for somebody: nothing of it is left on the seed, and its credentials are worth nothing.
func (a *agents) removed() {
	a.t.Helper()
	a.rotateAt("second")
	a.awaits(kubermaticv1.ReasonApprovalRequired, "kubectl certificate approve")
	token := a.agent(byToken)
	dropInstallation(a.t, a.seed, a.installed)
	a.expectNothing()
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsUnauthorized, a.list(token, a.namespace)) })
	expect.Gone(a.t, a.user, &corev1.Secret{ObjectMeta: a.given(byToken)})
	requests := &certificatesv1.CertificateSigningRequestList{}
	expect.List(a.t, a.seed, requests, client.HasLabels{kubermaticv1.LabelAccess})
	for _, request := range requests.Items {
		if len(request.Status.Conditions) == 0 { // those that were decided go with time
			a.t.Errorf("%q still waits for somebody", request.Name)
		}
	}
}

// expectNothing holds that nothing on the seed was made for an agent.
func (a *agents) expectNothing() {
	a.t.Helper()
	for _, left := range a.made() {
		a.t.Errorf("%s %q is there", left.Kind, left.Name)
	}
}

// made is what is on the seed for agents.
func (a *agents) made() (all []metav1.PartialObjectMetadata) {
	a.t.Helper()
	for _, kind := range []string{"v1/ServiceAccount", "v1/Secret", "rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/RoleBinding"} {
		at := strings.LastIndex(kind, "/")
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: kind[:at], Kind: kind[at+1:] + "List"}}
		expect.List(a.t, a.seed, list, client.HasLabels{kubermaticv1.LabelAccess})
		for _, one := range list.Items {
			one.Kind = kind[at+1:]
			all = append(all, one)
		}
	}
	return all
}
