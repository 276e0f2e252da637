package endtoend_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

const (
	// byToken and byCertificate are what the agent of these tests has access by.
	byToken, byCertificate = "hub", "signed"
	// handedOut is why nobody uses a right that the manager has to have.
	handedOut = "the manager hands it out to agents, which it may only as long as it has it: testAgents here"
)

// agents is the story of an add-on with access to its seed: by a token, with an outbox, and by a certificate that somebody approves.
type agents struct {
	t          *testing.T
	box        *sandbox.Sandbox
	seed, user client.Client
	namespace  string
	installed  *kubermaticv1.AddonInstallation
	// secrets are texts of all credentials that were seen.
	secrets canaries
}

// AG02, AG05, AG06, AG07, AG09, AG10, AG11, AG18: Under the chart's rights and policies an agent logs in, is rotated and leaves nothing. Red
// where one of them does not hold, and where the manager lacks a right for any of it.
func testAgents(t *testing.T, box *sandbox.Sandbox) {
	a := &agents{t: t, box: box, seed: box.Client(cluster.Seed), user: box.Client(cluster.Name), namespace: cluster.Namespace()}
	a.talkative(cluster.Seed + " --v=6\n")
	catalogue := a.publish()
	rights := &rbacv1.ClusterRole{}
	if err := box.Manifest("agent-rights.yaml", rights); err != nil {
		t.Fatal(err)
	}
	a.installed = newInstallation("agent", "agent")
	create(t, a.seed, a.installed.DeepCopy())
	a.awaits(kubermaticv1.ReasonRightsRefused, "get configmaps of the core group")
	a.expectNothing()
	create(t, a.seed, rights.DeepCopy())
	a.approve()
	ready(t, a.seed, a.installed)

	token, certificate := a.agent(byToken), a.agent(byCertificate)
	a.expectRightsOf(token, byToken)
	a.expectRightsOf(certificate, byCertificate)
	a.reports(token)
	a.putBack()
	token, certificate = a.rotates(token, certificate)
	a.listShrinks(rights, token, certificate)
	a.expectNoCanary()
	a.removed()
	if err := errors.Join(a.seed.Delete(t.Context(), rights), box.Client(sandbox.Master).Delete(t.Context(), catalogue)); err != nil {
		t.Fatal(err)
	}
	expect.Gone(t, a.seed, merged("agent"))
}

// talkative has the seed's manager start again with further flags, which its next start has no more.
func (a *agents) talkative(flags string) {
	a.t.Helper()
	path := a.box.Folder + "/flags"
	before, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(slices.Clone(before), flags...), 0o600); err != nil {
		a.t.Fatal(err)
	}
	a.box.Manager(cluster.Seed).Process().Kill()
	a.t.Cleanup(func() {
		if err := os.WriteFile(path, before, 0o600); err != nil {
			a.t.Error(err)
		}
		a.box.Manager(cluster.Seed).Process().Kill()
	})
}

// publish offers the sample, which has an outbox here, and a certificate besides.
func (a *agents) publish() *kubermaticv1.AddonCatalogue {
	a.t.Helper()
	catalogue := &kubermaticv1.AddonCatalogue{}
	if err := a.box.Manifest("agent-catalogue.yaml", catalogue); err != nil {
		a.t.Fatal(err)
	}
	template := catalogue.Spec.Addons[0].Versions[0].Template
	template.Access[0].Outbox = true
	template.Access = append(template.Access, kubermaticv1.Access{
		Name: byCertificate, Type: kubermaticv1.AccessByCertificate, Approval: kubermaticv1.ApprovalManual,
		Rules: []kubermaticv1.AccessRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	})
	create(a.t, a.box.Client(sandbox.Master), catalogue)
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
	if err := a.seed.Get(a.t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		a.t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{}
	at := slices.IndexFunc(found.Status.Access, func(one kubermaticv1.AccessState) bool { return one.Name == byCertificate })
	if err := a.seed.Get(a.t.Context(), client.ObjectKey{Name: found.Status.Access[at].Request}, request); err != nil {
		a.t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Looked", Message: "it was looked at",
	}}
	if err := a.seed.SubResource("approval").Update(a.t.Context(), request); err != nil {
		a.t.Fatal(err)
	}
}

// agent is who logs in with the files of a Secret, as they are mounted.
func (a *agents) agent(access string) client.Client {
	a.t.Helper()
	folder := a.t.TempDir()
	for key, content := range a.files(access) {
		if err := os.WriteFile(filepath.Join(folder, key), content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		a.t.Fatal(err)
	}
	return a.as(config)
}

func (a *agents) as(config *rest.Config) client.Client {
	a.t.Helper()
	made, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	if err != nil {
		a.t.Fatal(err)
	}
	return made
}

// files are those of a credential in the user cluster.
func (a *agents) files(access string) map[string][]byte {
	a.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "agent-" + access}}
	found := expect.Object(a.t, a.user, secret, func(found *corev1.Secret) error {
		if len(found.Data["token"])+len(found.Data["tls.key"]) == 0 {
			return errors.New("it has no credential")
		}
		return nil
	})
	a.secrets.add(found.Data)
	return found.Data
}

func (a *agents) list(agent client.Client, namespace string) error {
	return agent.List(a.t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
}

// expectRightsOf holds that an agent may what its version says, and what everybody may, and nothing else.
func (a *agents) expectRightsOf(agent client.Client, access string) {
	a.t.Helper()
	core := []string{""}
	want := []authorizationv1.ResourceRule{{Verbs: []string{"list"}, APIGroups: core, Resources: []string{"configmaps"}}}
	if access == byToken {
		want = []authorizationv1.ResourceRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: core, Resources: []string{"configmaps"}},
			{
				Verbs: []string{"create", "patch", "update"}, APIGroups: core, Resources: []string{"configmaps"},
				ResourceNames: []string{"addon-agent-report"},
			},
			{Verbs: []string{"get", "update", "patch"}, APIGroups: core, Resources: []string{"secrets"}, ResourceNames: []string{"addon-out-agent"}},
		}
	}
	everybodys := a.rulesOf(a.somebody())
	got := slices.DeleteFunc(a.rulesOf(agent), func(rule authorizationv1.ResourceRule) bool {
		return slices.ContainsFunc(everybodys, func(one authorizationv1.ResourceRule) bool { return apiequality.Semantic.DeepEqual(one, rule) })
	})
	less := func(a, b authorizationv1.ResourceRule) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(want, less)
	slices.SortFunc(got, less)
	if diff := cmp.Diff(want, got); diff != "" {
		a.t.Errorf("what the agent by %q may besides what everybody may (-want +got):\n%s", access, diff)
	}
	if err := a.list(agent, a.namespace); err != nil {
		a.t.Errorf("it may not list ConfigMaps: %v", err)
	}
	for what, err := range map[string]error{
		"Secrets":                      agent.List(a.t.Context(), &corev1.SecretList{}, client.InNamespace(a.namespace)),
		"ConfigMaps of another":        a.list(agent, sandbox.UserClusters()[1].Namespace()),
		"requests for certificates":    agent.List(a.t.Context(), &certificatesv1.CertificateSigningRequestList{}),
		"installations beside its own": agent.List(a.t.Context(), &kubermaticv1.AddonInstallationList{}, client.InNamespace(a.namespace)),
	} {
		if !apierrors.IsForbidden(err) {
			a.t.Errorf("of %s it got: %v", what, err)
		}
	}
}

// somebody has a token of the namespace's default account, to which nothing is bound.
func (a *agents) somebody() client.Client {
	a.t.Helper()
	token := &authenticationv1.TokenRequest{}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "default"}}
	if err := a.seed.SubResource("token").Create(a.t.Context(), of, token); err != nil {
		a.t.Fatal(err)
	}
	config := rest.CopyConfig(a.box.Server(cluster.Seed).Config)
	config.BearerToken = token.Status.Token
	return a.as(config)
}

func (a *agents) rulesOf(who client.Client) []authorizationv1.ResourceRule {
	a.t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: a.namespace}}
	if err := who.Create(a.t.Context(), review); err != nil || review.Status.Incomplete || review.Status.EvaluationError != "" {
		a.t.Fatalf("%v, %+v", err, review.Status)
	}
	return review.Status.ResourceRules
}

// reports writes what the agent may write: its report, which it makes by apply since a POST has no name to allow, and its outbox.
func (a *agents) reports(agent client.Client) {
	a.t.Helper()
	report := corev1apply.ConfigMap("addon-agent-report", a.namespace).WithData(map[string]string{"state": "fine"})
	if err := agent.Apply(a.t.Context(), report, client.FieldOwner("agent")); err != nil {
		a.t.Errorf("it can't report: %v", err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-agent-report"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-other-report"}}
	if err := agent.Create(a.t.Context(), other); !apierrors.IsForbidden(err) {
		a.t.Errorf("it made another's report: %v", err)
	}
	outbox := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-out-agent"}}
	put := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"word":"aGVsbG8="}}`))
	if err := agent.Patch(a.t.Context(), outbox, put); err != nil {
		a.t.Errorf("it can't write its outbox: %v", err)
	}
	if err := a.seed.Delete(a.t.Context(), made); err != nil {
		a.t.Error(err)
	}
}

// putBack has somebody edit what was made for the agent, and delete some of it.
func (a *agents) putBack() {
	a.t.Helper()
	name := metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-agent-agent-" + byToken}
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
		if err := a.seed.Patch(a.t.Context(), edited.object, client.RawPatch("application/merge-patch+json", []byte(edited.patch))); err != nil {
			a.t.Fatal(err)
		}
		expect.Object(a.t, a.seed, edited.object, func(found client.Object) error {
			if !edited.isBack(found) {
				return fmt.Errorf("it is as somebody edited it: %v", found)
			}
			return nil
		})
	}
	role := &rbacv1.Role{ObjectMeta: name}
	if err := a.seed.Delete(a.t.Context(), role); err != nil {
		a.t.Fatal(err)
	}
	expect.Object(a.t, a.seed, &rbacv1.Role{ObjectMeta: name}, func(*rbacv1.Role) error { return nil })
	stolen := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "agent-" + byToken}}
	if err := a.user.Delete(a.t.Context(), stolen); err != nil {
		a.t.Fatal(err)
	}
	a.agent(byToken)
}

// rotates has all credentials made anew, by a manager that is killed meanwhile. Those from before are worth nothing.
func (a *agents) rotates(token, certificate client.Client) (client.Client, client.Client) {
	a.t.Helper()
	a.rotateAt("first")
	a.box.Manager(cluster.Seed).Process().Kill()
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsUnauthorized, a.list(token, a.namespace)) })
	expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsForbidden, a.list(certificate, a.namespace)) })
	a.approve()
	ready(a.t, a.seed, a.installed)
	for _, access := range []string{byToken, byCertificate} {
		expect.Eventually(a.t, expect.Patience, func() error { return a.list(a.agent(access), a.namespace) })
	}
	return a.agent(byToken), a.agent(byCertificate)
}

func (a *agents) rotateAt(value string) {
	a.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubermaticv1.AnnotationRotateAt, value)
	if err := a.seed.Patch(a.t.Context(), a.installed.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		a.t.Fatal(err)
	}
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
	if err := a.seed.Delete(a.t.Context(), rights.DeepCopy()); err != nil {
		a.t.Fatal(err)
	}
	for _, agent := range had {
		expect.Eventually(a.t, expect.Patience, func() error { return unless(apierrors.IsForbidden, a.list(agent, a.namespace)) })
	}
	a.awaits(kubermaticv1.ReasonRightsRefused, "configmaps of the core group")
	pods := &corev1.PodList{}
	if err := a.user.List(a.t.Context(), pods, client.InNamespace("agent")); err != nil || len(pods.Items) == 0 {
		a.t.Errorf("%d pods of the agent are there: %v", len(pods.Items), err)
	}
	create(a.t, a.seed, rights.DeepCopy())
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
	expect.Gone(a.t, a.user, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: "agent-" + byToken}})
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := a.seed.List(a.t.Context(), requests, client.HasLabels{kubermaticv1.LabelAccess}); err != nil {
		a.t.Fatal(err)
	}
	for _, request := range requests.Items {
		if len(request.Status.Conditions) == 0 { // those that were decided go with time
			a.t.Errorf("%q still waits for somebody", request.Name)
		}
	}
}

// expectNothing holds that nothing on the seed was made for an agent.
func (a *agents) expectNothing() {
	a.t.Helper()
	for _, kind := range []string{"v1/ServiceAccount", "v1/Secret", "rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/RoleBinding"} {
		at := strings.LastIndex(kind, "/")
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: kind[:at], Kind: kind[at+1:] + "List"}}
		if err := a.seed.List(a.t.Context(), list, client.HasLabels{kubermaticv1.LabelAccess}); err != nil {
			a.t.Fatal(err)
		}
		for _, left := range list.Items {
			a.t.Errorf("%s %q is there", kind, left.Name)
		}
	}
}
