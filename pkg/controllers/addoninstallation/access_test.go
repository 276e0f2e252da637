package addoninstallation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// Agents: credentials for the hub, from the version that asks for them to the bearer that is refused.

// agentWorld has a platform that allows all agents to read ConfigMaps, and add-on agent with access to it.
func agentWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.driftInterval = time.Second
	w.agents = &access.Options{Hub: hubOf(fleet.Shared().Cluster("both").Config)}
	w.list(kubermaticv1.AgentsCustom, reading("configmaps"))
	w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", tokenFor("hub", reading("configmaps"))))
	return w
}

func hubOf(config *rest.Config) func() (access.Hub, error) {
	return func() (access.Hub, error) { return access.Hub{Server: config.Host, CA: config.CAData}, nil }
}

func reading(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get", "list"}}
}

func tokenFor(name string, rules ...rbacv1.PolicyRule) kubermaticv1.Access {
	asked := kubermaticv1.Access{Name: name, Lifetime: &metav1.Duration{Duration: time.Hour}}
	for _, rule := range rules {
		asked.Rules = append(asked.Rules, kubermaticv1.AccessRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs})
	}
	return asked
}

// agent is a version with a ConfigMap that names the Secret of its first access, if it has one, and its own Secret.
func (w *world) agent(version string, asked ...kubermaticv1.Access) kubermaticv1.AddonVersion {
	w.t.Helper()
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Variables.version }}', hub: %s}\n"
	own := "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\n"
	made := w.content(version, kubermaticv1.MethodGoTemplate, w.unique("agents"), map[string]string{
		"with/settings.yaml":    fmt.Sprintf(settings, "'{{ .HubKubeConfigSecret }} of {{ .ClusterName }}'"),
		"with/own.yaml":         own,
		"without/settings.yaml": fmt.Sprintf(settings, "none"),
		"without/own.yaml":      own,
	})
	made.Template.Access = asked
	if made.Source.Git.Path += "/with"; len(asked) == 0 {
		made.Source.Git.Path += "out"
	}
	return made
}

// list adds rules to the platform's list for the agents of this world.
func (w *world) list(which string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	w.t.Helper()
	list := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("agents-%s-%s-%s", which, w.id, rules[0].Resources[0]),
			Labels: map[string]string{kubermaticv1.LabelAgents: which, labelWorld: w.id},
		},
		Rules: rules,
	}
	w.create(list)
	return list
}

// hubSecret is the Secret with a credential in the user cluster.
func hubSecret(object *kubermaticv1.AddonInstallation, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: object.Name + "-" + name}}
}

// bearer is a client like the agent's: it uses the files of its Secret, as a kubelet mounts them.
func (w *world) bearer(object *kubermaticv1.AddonInstallation, name string) client.Client {
	w.t.Helper()
	return w.bearerOf(object, hubSecret(object, name).Name)
}

// bearerOf is the same with the Secret of a name.
func (w *world) bearerOf(object *kubermaticv1.AddonInstallation, name string) client.Client {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: name}}
	expect.Read(w.t, w.seed, secret)
	folder := w.t.TempDir()
	for file, content := range secret.Data {
		expect.NoError(w.t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	expect.NoError(w.t, err)
	made, err := client.New(config, client.Options{})
	expect.NoError(w.t, err)
	return made
}

func (w *world) expectAccess(object *kubermaticv1.AddonInstallation, status, reason, says string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, object, expect.Is(kubermaticv1.ConditionAccessReady, status, reason, says))
}

// AG05, AG10: The credential is in the user cluster before later objects are applied. It grants only the rules of the
// version, only in the cluster namespace. It is invalid once the add-on is removed, and nothing of it is left on the
// seed.
func TestAnAgentLogsIn(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	heard := w.overhear()
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	w.expectAccess(object, "True", kubermaticv1.ReasonAccessGranted, "")
	calls := heard.sinceThen()
	at := func(part string) int {
		return slices.IndexFunc(calls, func(call string) bool { return strings.HasPrefix(call, "PATCH ") && strings.Contains(call, part) })
	}
	if secret, settings := at("/secrets/agent-hub"), at("/configmaps/settings"); secret < 0 || settings < secret {
		t.Errorf("the credential is written by call %d, the rest by call %d", secret, settings)
	}
	if figures := figuresOf(t, w.figures); !slices.Contains(figures, "agent_credentials_issued_total issued Token 1") {
		t.Errorf("the figures are %q", figures)
	}
	shown := object.Status.Access
	if len(shown) != 1 || shown[0].Secret != "agent-hub" || shown[0].Expires.IsZero() ||
		shown[0].Subject != "system:serviceaccount:"+w.namespace+":addon-agent-agent-hub" {
		t.Errorf("status.access is %+v", shown)
	}
	settings := &corev1.ConfigMap{}
	expect.Get(t, w.seed, client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "settings"}, settings)
	if want := "agent-hub of " + w.namespace; settings.Data["hub"] != want {
		t.Errorf("templates see %q, want %q", settings.Data["hub"], want)
	}
	bearer := w.bearer(object, "hub")
	if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("what is listed is refused: %v", err)
	}
	for why, err := range map[string]error{
		"Secrets":            bearer.List(t.Context(), &corev1.SecretList{}, client.InNamespace(w.namespace)),
		"another namespace":  bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.catalogue)),
		"writing ConfigMaps": bearer.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"}}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", why, err)
		}
	}
	w.delete(object)
	expect.Gone(t, w.seed, object)
	expect.Gone(t, w.seed, hubSecret(object, "hub"))
	w.expectNothingMade(object)
	expect.Eventually(t, expect.Patience, func() error {
		if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the former token is answered with %v", err)
		}
		return nil
	})
}

// expectNothingMade checks that the seed has no objects for agents of an installation.
func (w *world) expectNothingMade(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{}} {
			err := w.seed.List(w.t.Context(), list, client.InNamespace(object.Namespace), client.HasLabels{kubermaticv1.LabelAccess})
			if err != nil {
				return err
			}
			if count := meta.LenList(list); count > 0 {
				return fmt.Errorf("there are %d in %T", count, list)
			}
		}
		return nil
	})
}

// AG02, AG15: Without a hub, and without a list, a first version waits, and an upgrade keeps the applied version; with
// the list it continues.
func TestNothingIsAppliedBeforeItsCredentials(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	hub := w.agents
	w.agents = nil
	stop := w.startUntil()
	object := w.install("agent", "1.0.0")
	w.expectAccess(object, "False", kubermaticv1.ReasonHubUnknown, "--hub-server")
	w.expectNothingMade(object)
	if w.count(object) != 0 {
		t.Error("something was applied")
	}
	stop()
	w.agents = hub
	w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", tokenFor("hub", reading("configmaps"))),
		w.agent("2.0.0", tokenFor("hub", reading("configmaps")), tokenFor("events", reading("events"))),
		w.agent("3.0.0", tokenFor("hub", reading("configmaps"), reading("events"))))
	w.start()
	w.ready(object)
	w.want(object, "2.0.0")
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, kubermaticv1.LabelAgents)
	if object.Status.Version != "1.0.0" {
		t.Errorf("version %q is installed", object.Status.Version)
	}
	if err := w.bearer(object, "hub").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("what runs lost its rights: %v", err)
	}
	w.want(object, "3.0.0") // which asks for more under the same name
	w.expectSummary(object, "False", kubermaticv1.ReasonRightsRefused, "")
	w.afterAnother(object)
	if err := w.bearer(object, "hub").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("what runs lost its rights: %v", err)
	}
	w.want(object, "2.0.0")
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, `access "events"`)
	w.afterwards(object, func() { w.list(kubermaticv1.AgentsCore, reading("events")) }) // for Core catalogues only
	w.afterAnother(object)
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, `access "events"`)
	w.list("custom", reading("events"))
	w.expectApplied(object, "2.0.0")
	w.expectAccess(object, "True", kubermaticv1.ReasonAccessGranted, "")
}

// AG07: A shorter list revokes rights at once, also of a paused installation. The installed objects stay and are
// repaired, and the rights return with the list.
func TestAListThatShrinksTakesRightsAway(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	bearer := w.bearer(object, "hub")
	listed := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("agents-custom-%s-configmaps", w.id)}}
	change := func(rules ...rbacv1.PolicyRule) {
		expect.Read(t, w.seed, listed)
		listed.Rules = rules
		expect.Update(t, w.seed, listed)
	}
	change()
	expect.Eventually(t, 10*time.Second, func() error {
		if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the agent is answered with %v", err)
		}
		return nil
	})
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, "configmaps")
	if err := expect.Condition(object, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonRightsRefused); err != nil {
		t.Error(err)
	}
	if err := expect.Condition(object, kubermaticv1.ConditionApplied, "True", kubermaticv1.ReasonApplied); err != nil {
		t.Error(err)
	}
	settings := configMap(object.Spec.TargetNamespace, "settings")
	w.delete(settings)
	expect.Object(t, w.seed, settings, func(*corev1.ConfigMap) error { return nil }) // the installed objects are maintained
	change(reading("configmaps"))
	w.ready(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
	w.expectSummary(object, "False", kubermaticv1.ReasonPaused, "")
	change()
	expect.Eventually(t, 10*time.Second, func() error {
		if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the agent is answered with %v", err)
		}
		return nil
	})
}

// AG16: An edited or deleted Secret is written again, and a foreign one of its name stays unchanged.
func TestTheAgentsSecretIsPutBack(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	namespace := w.unique("agent")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	before := given.Secret(namespace, "agent-hub", map[string][]byte{"token": []byte("somebody's")})
	w.create(before)
	w.start()
	object := w.install("agent", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonObjectExists, "agent-hub")
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil || string(before.Data["token"]) != "somebody's" {
		t.Fatalf("what was there has %v, %v", before.Data, err)
	}
	w.delete(before)
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.ready(object)
	good := hubSecret(object, "hub")
	expect.Read(t, w.seed, good)
	token := string(good.Data["token"])
	isBack := func(now *corev1.Secret) error {
		if string(now.Data["token"]) != token {
			return errors.New("the token is another")
		}
		return nil
	}
	good.Data["token"] = []byte("edited")
	expect.Update(t, w.seed, good)
	expect.Object(t, w.seed, hubSecret(object, "hub"), isBack)
	w.delete(hubSecret(object, "hub"))
	expect.Object(t, w.seed, hubSecret(object, "hub"), isBack)
}

// TestARestartIssuesNothing: a new process reads the existing credentials, and writes nothing.
func TestARestartIssuesNothing(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.driftInterval = time.Minute
	heard := w.overhear()
	stop := w.startUntil()
	object := w.install("agent", "")
	w.ready(object)
	stop()
	version, was := w.versions(object), hubSecret(object, "hub")
	expect.Read(t, w.seed, was)
	heard.sinceThen()
	w.start()
	var calls []string
	expect.Eventually(t, expect.Patience, func() error {
		calls = append(calls, heard.sinceThen()...)
		if !slices.ContainsFunc(calls, func(call string) bool { return strings.Contains(call, "/secrets/agent-hub") }) {
			return errors.New("the Secret in the user cluster was not looked at")
		}
		return nil
	})
	w.manager.AtRest(controller, object)
	if now := w.versions(object); now != version {
		t.Errorf("the seed has %s, had %s", now, version)
	}
	calls = append(calls, heard.sinceThen()...)
	reads := 0
	for _, call := range calls {
		if !strings.HasPrefix(call, "GET ") {
			t.Errorf("a call was %s", call)
		}
		if strings.Contains(call, "/secrets/agent-hub") {
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("the Secret in the user cluster was read %d times", reads)
	}
}

// versions are the resource versions of everything that the seed has of an installation.
func (w *world) versions(object *kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	var all []string
	for _, list := range []client.ObjectList{
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{}, &kubermaticv1.AddonInstallationList{},
	} {
		expect.List(w.t, w.seed, list, client.InNamespace(object.Namespace))
		items, err := meta.ExtractList(list)
		expect.NoError(w.t, err)
		for _, item := range items {
			about := item.(client.Object)
			all = append(all, fmt.Sprintf("%T %s %s", item, about.GetName(), about.GetResourceVersion()))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// later is a keeper whose clock is some seconds ahead.
type later struct {
	addoninstallation.Access
	seconds *atomic.Int64
}

func (l later) Keep(
	ctx context.Context, holder access.Holder, asked []kubermaticv1.Access, memory *access.Memory, now time.Time,
) ([]access.Status, error) {
	return l.Access.Keep(ctx, holder, asked, memory, now.Add(time.Duration(l.seconds.Load())*time.Second))
}

// AG17: The credential is renewed from the record if the version is withdrawn, values are wrong, or the installation is
// paused; the previous one is valid until its end.
func TestARenewalNeedsNoVersion(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(w *world, object *kubermaticv1.AddonInstallation){
		"withdrawn": func(w *world, object *kubermaticv1.AddonInstallation) {
			w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("3.0.0", tokenFor("hub", reading("configmaps"))))
			w.expectSummary(object, "False", kubermaticv1.ReasonWithdrawn, "")
		},
		"values are wrong": func(w *world, object *kubermaticv1.AddonInstallation) {
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.ValuesTemplate = "{{" })
			w.expectSummary(object, "False", kubermaticv1.ReasonValuesInvalid, "")
		},
		"paused": func(w *world, object *kubermaticv1.AddonInstallation) {
			w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.Paused = true })
			w.expectSummary(object, "False", kubermaticv1.ReasonPaused, "")
		},
		"once": func(w *world, object *kubermaticv1.AddonInstallation) {
			w.edit(object, func(object *kubermaticv1.AddonInstallation) {
				object.Spec.ReconcileStrategy = kubermaticv1.ReconcileOnce
			})
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := agentWorld(t)
			seconds := &atomic.Int64{}
			w.keeper = func(keeper addoninstallation.Access) addoninstallation.Access { return later{keeper, seconds} }
			w.start()
			object := w.install("agent", "1.0.0")
			w.ready(object)
			was := hubSecret(object, "hub")
			expect.Read(t, w.seed, was)
			previous := w.bearer(object, "hub")
			change(w, object)
			seconds.Store(55 * 60)
			w.annotate(object, kubermaticv1.AnnotationReconcileAt, "later")
			expect.Object(t, w.seed, hubSecret(object, "hub"), func(now *corev1.Secret) error {
				if string(now.Data["token"]) == string(was.Data["token"]) {
					return errors.New("the token is the former")
				}
				return nil
			})
			for _, bearer := range []client.Client{previous, w.bearer(object, "hub")} {
				if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
					t.Errorf("a credential is refused: %v", err)
				}
			}
		})
	}
}

// TestAnUpgradeThatAsksForNoAccessLosesIt: once the previous version's other objects are gone, the Secret and its
// credential are removed too.
func TestAnUpgradeThatAsksForNoAccessLosesIt(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", tokenFor("hub", reading("configmaps"))), w.agent("2.0.0"))
	w.start()
	object := w.install("agent", "1.0.0")
	w.ready(object)
	w.want(object, "2.0.0")
	w.expectApplied(object, "2.0.0")
	expect.Gone(t, w.seed, hubSecret(object, "hub"))
	w.expectNothingMade(object)
	expect.Object(t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if len(object.Status.Access) > 0 || meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionAccessReady) != nil {
			return fmt.Errorf("the status has %+v", object.Status.Access)
		}
		return nil
	})
}

// AG09: Another value of annotation rotate-at replaces the credentials.
func TestRotatedCredentialsAreWorthNothing(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	previous := w.bearer(object, "hub")
	w.annotate(object, kubermaticv1.AnnotationRotateAt, "now")
	expect.Eventually(t, 20*time.Second, func() error {
		if err := previous.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the former token is answered with %v", err)
		}
		return nil
	})
	w.ready(object)
	if err := w.bearer(object, "hub").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("the new token is refused: %v", err)
	}
}

// AG10: With deletionPolicy Orphan the applied objects stay, and their credentials are revoked.
func TestOrphansLoseTheirCredentials(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) { object.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan })
	w.delete(object)
	expect.Gone(t, w.seed, object)
	w.expectNothingMade(object)
	if w.count(object) == 0 {
		t.Error("what was applied is gone")
	}
}

// AG05: With Cluster API a namespace may have several Clusters. An agent of one would reach the objects of the others,
// so it loses its rights when another one is created, unless the platform allows it.
func TestAnAgentIsAloneInItsNamespace(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	m.driftInterval = time.Second
	m.agents = &access.Options{Hub: hubOf(fleet.Shared().Cluster("both").Config)}
	m.list(kubermaticv1.AgentsCustom, reading("configmaps"))
	m.publishInto("agent", m.unique("agent"), m.agent("1.0.0", tokenFor("hub", reading("configmaps"))))
	m.add("one", "both")
	stop := m.startUntil()
	object := m.requestIn("one", "one.agent", "agent")
	m.ready(object)
	bearer := m.bearer(object, "hub")
	if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(m.namespace)); err != nil {
		t.Errorf("what is listed is refused: %v", err)
	}
	m.add("two", "elsewhere")
	m.expectAccess(object, "False", kubermaticv1.ReasonSharedNamespace, "--agents-in-shared-namespaces")
	expect.Eventually(t, expect.Patience, func() error {
		if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(m.namespace)); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the agent is answered with %v", err)
		}
		return nil
	})
	stop()
	m.agents.Shared = true
	m.start()
	m.ready(object)
	m.expectAccess(object, "True", kubermaticv1.ReasonAccessGranted, "")
	expect.Eventually(t, expect.Patience, func() error {
		return bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(m.namespace))
	})
}

// AG05: An agent may write into its outbox as often as it likes: that wakes no installation.
func TestAnOutboxWakesNobody(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.driftInterval = time.Hour
	asked := tokenFor("hub", reading("configmaps"))
	asked.Outbox = true
	w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", asked))
	w.start()
	object := w.install("agent", "")
	w.ready(object)
	agent := w.bearer(object, "hub")
	outbox := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "addon-out-agent"}}
	w.afterAnother(object) // the initial reconciliations are over
	settled := w.begun(object)
	for turn := range 40 {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"turn":"%d"}}`, turn))
		expect.Patch(t, agent, outbox.DeepCopy(), patch)
	}
	w.afterAnother(object)                        // its event follows all of these
	if now := w.begun(object); now > settled+12 { // reconcile-at alone causes some
		t.Errorf("%d passes for what an agent wrote into its outbox", now-settled)
	}
}

// TestAVersionThatWaitsPutsNothingIntoTheCluster: if one credential of a version is refused, none is written to the
// user cluster, and none stays after the version is given up.
func TestAVersionThatWaitsPutsNothingIntoTheCluster(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	w.offer("agent", kubermaticv1.CatalogueCustom, w.agent("1.0.0", tokenFor("hub", reading("configmaps"))),
		w.agent("2.0.0", tokenFor("other", reading("configmaps")), tokenFor("events", reading("events"))))
	w.start()
	object := w.install("agent", "1.0.0")
	w.ready(object)
	w.want(object, "2.0.0")
	w.expectAccess(object, "False", kubermaticv1.ReasonRightsRefused, `access "events"`)
	for range 3 { // reconciliations that maintain
		w.afterAnother(object)
	}
	if w.has(&corev1.Secret{}, object.Spec.TargetNamespace, hubSecret(object, "other").Name) {
		t.Error("there is the Secret of what is not installed")
	}
	if err := w.bearer(object, "hub").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("what is installed lost its rights: %v", err)
	}
	w.want(object, "1.0.0")
	w.ready(object)
	expect.Gone(t, w.seed, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "addon-agent-agent-other"}})
	if err := w.bearer(object, "hub").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace)); err != nil {
		t.Errorf("what is installed lost its rights: %v", err)
	}
	w.delete(object)
	expect.Gone(t, w.seed, object)
	w.expectNothingMade(object)
}

// TestAManifestThatHasTheNameOfACredentialIsRefused: both would write one Secret, again and again.
func TestAManifestThatHasTheNameOfACredentialIsRefused(t *testing.T) {
	t.Parallel()
	w := agentWorld(t)
	taken := w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("taken"), map[string]string{
		"own.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: agent-hub}\n",
	})
	taken.Template.Access = []kubermaticv1.Access{tokenFor("hub", reading("configmaps"))}
	w.offer("agent", kubermaticv1.CatalogueCustom, taken)
	w.start()
	object := w.install("agent", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonRenderFailed, `"agent-hub"`)
	w.expectNothingMade(object)
}
