package endtoend_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// agent is who logs in with the files of a Secret, as they are mounted.
func (a *agents) agent(access string) client.Client {
	a.t.Helper()
	folder := a.home.TempDir()
	for key, content := range a.files(access) {
		expect.NoError(a.t, os.WriteFile(filepath.Join(folder, key), content, 0o600))
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	expect.NoError(a.t, err)
	return a.as(config)
}

func (a *agents) as(config *rest.Config) client.Client {
	a.t.Helper()
	made, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	expect.NoError(a.t, err)
	return made
}

// files are those of a credential in the user cluster.
func (a *agents) files(access string) map[string][]byte {
	a.t.Helper()
	secret := &corev1.Secret{ObjectMeta: a.given(access)}
	found := expect.Object(a.t, a.user, secret, func(found *corev1.Secret) error {
		if len(found.Data["token"])+len(found.Data["tls.key"]) == 0 {
			return errors.New("it has no credential")
		}
		return nil
	})
	a.secrets.add(found.Data)
	return found.Data
}

// given is the place of a credential in the user cluster.
func (a *agents) given(access string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.installed.Spec.TargetNamespace, Name: a.installed.Name + "-" + access}
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
				ResourceNames: []string{a.reportName()},
			},
			{
				Verbs: []string{"get", "update", "patch"}, APIGroups: core, Resources: []string{"secrets"},
				ResourceNames: []string{"addon-out-" + a.installed.Name},
			},
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
		"ConfigMaps of another":        a.list(agent, a.elsewhere),
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
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "default"}}
	token := expect.Token(a.t, a.seed, of)
	config := rest.CopyConfig(a.box.Server(a.on.Seed).Config)
	config.BearerToken = token
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

func (a *agents) reportName() string { return "addon-" + a.installed.Name + "-report" }

// reports writes what the agent may write: its report, which it makes by apply since a POST has no name to allow, and its outbox.
func (a *agents) reports(agent client.Client) {
	a.t.Helper()
	report := corev1apply.ConfigMap(a.reportName(), a.namespace).WithData(map[string]string{"state": "fine"})
	if err := agent.Apply(a.t.Context(), report, client.FieldOwner("agent")); err != nil {
		a.t.Errorf("it can't report: %v", err)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.reportName()}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-other-report"}}
	if err := agent.Create(a.t.Context(), other); !apierrors.IsForbidden(err) {
		a.t.Errorf("it made another's report: %v", err)
	}
	outbox := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addon-out-" + a.installed.Name}}
	put := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"word":"aGVsbG8="}}`))
	if err := agent.Patch(a.t.Context(), outbox, put); err != nil {
		a.t.Errorf("it can't write its outbox: %v", err)
	}
	if err := a.seed.Delete(a.t.Context(), made); err != nil {
		a.t.Error(err)
	}
}
