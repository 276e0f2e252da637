package endtoend_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// teamAgents are the agents of two Clusters that share a namespace: the add-on of one is removed, the other one goes with its Cluster.
type teamAgents struct {
	// t is the test that all of theirs are of.
	t             *testing.T
	m             *management
	removed, left *agents
	rights        *rbacv1.ClusterRole
	catalogue     *kubermaticv1.AddonCatalogue
	// token and certificate are what the one that is left logs in by.
	token, certificate client.Client
}

func (m *management) agents(t *testing.T) *teamAgents {
	t.Helper()
	return &teamAgents{m: m, rights: &rbacv1.ClusterRole{}, t: t}
}

// start has both agents installed, and is over when they have their credentials.
func (a *teamAgents) start(t *testing.T) {
	t.Helper()
	a.removed = agentsOf(t, a.m.box, a.m.upgraded, sandbox.Namespace)
	a.left = agentsOf(t, a.m.box, a.m.removed, sandbox.Namespace)
	a.left.home = a.t // it is there until its Cluster is gone
	expect.NoError(t, a.m.box.Manifest("agent-rights.yaml", a.rights))
	expect.Ensure(t, a.m, a.rights.DeepCopy())
	a.catalogue = a.left.publish(unasked)
	for _, one := range []*agents{a.removed, a.left} {
		one.installed = existing(one.on, one.on.Name+"-agent")
		one.installed.Spec = kubermaticv1.AddonInstallationSpec{
			ClusterName: one.on.Name, AddonRef: kubermaticv1.AddonReference{Name: "agent"}, TargetNamespace: "agent", CreateNamespace: true,
		}
		expect.Ensure(t, a.m, one.installed.DeepCopy())
	}
	ready(t, a.m, a.removed.installed)
	ready(t, a.m, a.left.installed)
}

// AG05, AG06, AG10: Under the chart's rights and policies the agents of two of Cluster API's Clusters, in one namespace since
// agents.sharedNamespaces is set, log in by a token and by a certificate that the manager approves. Each has the rights of its version
// there and nowhere else, and may write nothing of the other one's. What is made for one is its Cluster's, and ends with its add-on, while
// the other one goes on.
func (a *teamAgents) testLogIn(t *testing.T) {
	a.start(t)
	for _, one := range []*agents{a.removed, a.left} {
		one.expectRightsOf(one.agent(byToken), byToken)
		one.expectRightsOf(one.agent(unasked), unasked)
		one.reports(one.agent(byToken))
		one.expectApproved()
	}
	a.expectApart(t)
	a.expectOwners(t)
	a.removed.putBack()
	a.token, a.certificate = a.left.agent(byToken), a.left.agent(unasked)
	token, certificate := a.removed.agent(byToken), a.removed.agent(unasked)
	dropInstallation(t, a.m, a.removed.installed)
	a.removed.expectWorthless(token, certificate)
	for _, one := range a.left.made() {
		if one.Annotations[kubermaticv1.AnnotationAccessOf] != a.left.installed.Name {
			t.Errorf("%s %q stays", one.Kind, one.Name)
		}
	}
	if err := errors.Join(a.left.list(a.token, sandbox.Team), a.left.list(a.certificate, sandbox.Team)); err != nil {
		t.Errorf("the agent of the other Cluster is refused: %v", err)
	}
}

// expectApart holds that an agent may not write what the other one reports.
func (a *teamAgents) expectApart(t *testing.T) {
	t.Helper()
	report := corev1apply.ConfigMap(a.left.reportName(), sandbox.Team).WithData(map[string]string{"state": "forged"})
	if err := a.removed.agent(byToken).Apply(t.Context(), report, client.FieldOwner("agent")); !apierrors.IsForbidden(err) {
		t.Errorf("it writes the report of the other Cluster's agent: %v", err)
	}
}

// expectOwners holds that what is made for an agent belongs to its Cluster, and to nothing else.
func (a *teamAgents) expectOwners(t *testing.T) {
	t.Helper()
	type owner struct{ version, kind, name, uid string }
	want := map[string]owner{}
	for _, one := range []*agents{a.removed, a.left} {
		cluster := sandbox.TeamObject(one.on)
		expect.Read(t, a.m, cluster)
		want[one.installed.Name] = owner{capiv1.V1Beta2.String(), "Cluster", cluster.GetName(), string(cluster.GetUID())}
	}
	counted := map[string]int{}
	for _, one := range a.left.made() {
		of := one.Annotations[kubermaticv1.AnnotationAccessOf]
		counted[of+" "+one.Kind]++
		var owners []owner
		for _, by := range one.OwnerReferences {
			owners = append(owners, owner{by.APIVersion, by.Kind, by.Name, string(by.UID)})
		}
		if diff := cmp.Diff([]owner{want[of]}, owners, cmp.AllowUnexported(owner{})); diff != "" {
			t.Errorf("owners of %s %q (-want +got):\n%s", one.Kind, one.Name, diff)
		}
	}
	for of := range want { // a certificate has no account; an outbox is a Secret too
		for kind, count := range map[string]int{"ServiceAccount": 1, "Role": 2, "RoleBinding": 2, "Secret": 3} {
			if got := counted[of+" "+kind]; got != count {
				t.Errorf("%s has %d of kind %s, want %d", of, got, kind, count)
			}
		}
	}
}

// AG10: A Cluster that went took the credentials of its agent along: they are worth nothing, and nothing of them is left.
func (a *teamAgents) testEnded(t *testing.T) {
	if a.token == nil || a.certificate == nil {
		t.Fatal("it did not log in before")
	}
	a.left.t = t
	a.left.expectWorthless(a.token, a.certificate)
	a.left.expectNothing()
	expect.NoError(t, errors.Join(a.m.Delete(t.Context(), a.rights), a.m.box.Client(sandbox.Master).Delete(t.Context(), a.catalogue)))
	expect.Gone(t, a.m, merged("agent"))
}

// expectWorthless holds that a token is nobody's, and that whoever has a certificate may nothing.
func (a *agents) expectWorthless(token, certificate client.Client) {
	a.t.Helper()
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsUnauthorized, a.list(token, a.namespace)) })
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsForbidden, a.list(certificate, a.namespace)) })
}
