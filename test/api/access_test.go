package api

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/test/expect"
)

// accessPath is the place of credentials in the schema.
const accessPath = "spec.addons[].versions[].template.access[]"

// access has a version ask for credentials, each in YAML.
func access(each ...string) edits {
	return edits{versionPath + "template": "{method: helm, access: [" + strings.Join(each, ", ") + "]}"}
}

// accessRules are those of template.access.
func accessRules() []rule {
	const signed = "type: Certificate, signerName: a.example.com/client"
	asks := "rules: [" + accessRule("verbs", "[get]") + "]"
	return []rule{
		{
			at: accessPath, kind: "cel: signerName and approval need type Certificate", why: "nobody signs or approves a token",
			good: access("{name: a, type: Certificate, signerName: kubernetes.io/kube-apiserver-client, approval: Manual, " + asks + "}"),
			bad:  access("{name: a, approval: Manual}"),
		},
		{
			at: accessPath, kind: "cel: signerName and approval need type Certificate", why: "nor by the name of the type",
			good: access("{name: a, type: Certificate, approval: Automatic}"),
			bad:  access("{name: a, type: Token, signerName: kubernetes.io/kube-apiserver-client}"),
		},
		{
			at: accessPath, kind: "cel: rules and outbox need the API server's own signer", why: "they would give nothing",
			good: access("{name: a, " + signed + ", outbox: false}"),
			bad:  access("{name: a, " + signed + ", " + asks + "}"),
		},
		{
			at: accessPath, kind: "cel: rules and outbox need the API server's own signer", why: "nobody could write it",
			good: access("{name: a, type: Certificate, outbox: true, " + asks + "}"),
			bad:  access("{name: a, " + signed + ", outbox: true}"),
		},
		{
			at: accessPath, kind: "cel: subject needs a signerName other than the API server's own", why: "rights are bound to the user there",
			good: access("{name: a, " + signed + ", subject: {user: x, groups: [z]}}"),
			bad:  access("{name: a, type: Certificate, subject: {user: x}}"),
		},
		{
			at: accessPath, kind: "cel: subject needs a signerName other than the API server's own", why: "also if the signer is named",
			good: access("{name: a, " + signed + "}"),
			bad:  access("{name: a, type: Certificate, signerName: kubernetes.io/kube-apiserver-client, subject: {user: x}}"),
		},
		{
			at: accessPath + ".secretName", kind: "pattern", why: "it is the name of a Secret",
			good: access("{name: a, secretName: $(installation)-hub.kubeconfig}"), bad: access("{name: a, secretName: Hub}"),
		},
		{
			at: accessPath + ".name", kind: "pattern", why: "it becomes part of names of Secrets, accounts and roles",
			good: access("{name: hub-1}"), bad: access("{name: hub.1}"),
		},
		{
			at: accessPath + ".type", kind: "enum", why: "two kinds of credentials",
			good: access("{name: a, type: Token}"), bad: access("{name: a, type: Password}"),
		},
		{
			at: accessPath + ".approval", kind: "enum", why: "two ways",
			good: access("{name: a, type: Certificate, approval: Manual}"), bad: access("{name: a, type: Certificate, approval: Always}"),
		},
		{
			at: accessPath + ".lifetime", kind: "pattern", why: "what is no duration would break every reader of the kind",
			good: access("{name: a, lifetime: 1h30m}"), bad: access("{name: a, lifetime: 30d}"),
		},
		{
			at: accessPath + ".lifetime", kind: "cel: lifetime must be between 1h and 720h", why: "each renewal is a write on the seed",
			good: access("{name: a, lifetime: 1h}"), bad: access("{name: a, lifetime: 59m}"),
		},
		{
			at: accessPath + ".lifetime", kind: "cel: lifetime must be between 1h and 720h", why: "nobody takes a token back before its end",
			good: access("{name: a, lifetime: 720h}"), bad: access("{name: a, lifetime: 721h}"),
		},
		{
			at: accessPath + ".signerName", kind: "pattern", why: "signers are a domain and a name",
			good: access("{name: a, " + signed + "}"), bad: access("{name: a, type: Certificate, signerName: a.example.com}"),
		},
	}
}

// accessRule is a rule with one field of another value.
func accessRule(field, value string) string {
	values := map[string]string{"apiGroups": "[a.io]", "resources": "[as]", "verbs": "[get]", field: value}
	var all []string
	for name, value := range values {
		all = append(all, name+": "+value)
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// times repeats a text as a YAML list.
func times(count int, text string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+", ", count), ", ") + "]"
}

// accessMaxima are how long the lists and texts of an access may be.
func accessMaxima() []rule {
	in := func(field string, of func(length int) string) func(int) edits {
		return func(length int) edits { return access("{name: a, rules: [" + accessRule(field, of(length)) + "]}") }
	}
	list := func(field, text string) func(int) edits {
		return in(field, func(length int) string { return times(length, text) })
	}
	word := func(field string) func(int) edits {
		return in(field, func(length int) string {
			return "[" + strings.Repeat("a.", length/2) + strings.Repeat("a", length%2) + "]"
		})
	}
	subject := func(user, groups string) edits {
		return access("{name: a, type: Certificate, signerName: a.io/a, subject: {user: " + user + ", groups: " + groups + "}}")
	}
	return []rule{
		most(accessPath, "maxItems", 4, func(length int) edits {
			var each []string
			for at := range length {
				each = append(each, fmt.Sprintf("{name: a%d}", at))
			}
			return access(each...)
		}),
		most(accessPath+".name", "maxLength", 40, func(length int) edits { return access("{name: " + strings.Repeat("a", length) + "}") }),
		most(accessPath+".signerName", "maxLength", 571, func(length int) edits {
			const domain = "a.io/"
			return access("{name: a, type: Certificate, signerName: " + domain + strings.Repeat("a", length-len(domain)) + "}")
		}),
		most(accessPath+".secretName", "maxLength", 150, func(length int) edits {
			return access("{name: a, secretName: " + strings.Repeat("a", length) + "}")
		}),
		most(accessPath+".subject.user", "maxLength", 256, func(length int) edits { return subject(strings.Repeat("a", length), "[]") }),
		most(accessPath+".subject.groups", "maxItems", 8, func(length int) edits { return subject("a", times(length, "a")) }),
		most(accessPath+".subject.groups[]", "maxLength", 256, func(length int) edits {
			return subject("a", "["+strings.Repeat("a", length)+"]")
		}),
		most(accessPath+".rules", "maxItems", 16, func(length int) edits {
			return access("{name: a, rules: " + times(length, accessRule("verbs", "[get]")) + "}")
		}),
		most(accessPath+".rules[].apiGroups", "maxItems", 16, list("apiGroups", "a.io")),
		most(accessPath+".rules[].resources", "maxItems", 32, list("resources", "as")),
		most(accessPath+".rules[].resourceNames", "maxItems", 32, list("resourceNames", "a")),
		most(accessPath+".rules[].verbs", "maxItems", 7, list("verbs", "get")),
		most(accessPath+".rules[].apiGroups[]", "maxLength", 253, word("apiGroups")),
		most(accessPath+".rules[].resourceNames[]", "maxLength", 253, word("resourceNames")),
	}
}

// TestMaximaOfAccess turns red when a version may ask for more than it may, of anything.
func TestMaximaOfAccess(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for _, one := range accessMaxima() {
			t.Run(one.key(), func(t *testing.T) { api.check(t, "AddonCatalogue", one) })
		}
		for _, field := range []string{"apiGroups", "resources", "verbs"} {
			none := access("{name: a, rules: ["+accessRule(field, "[]")+"]}").on(t, parse(t, bases["AddonCatalogue"]))
			if err := api.try(t.Context(), none); err == nil || !strings.Contains(err.Error(), "should have at least 1 items") {
				t.Errorf("a rule without %s is answered with %v", field, err)
			}
		}
		twice := access("{name: a}", "{name: a}").on(t, parse(t, bases["AddonCatalogue"]))
		if err := api.try(t.Context(), twice); err == nil || !strings.Contains(err.Error(), "Duplicate value") {
			t.Errorf("two of one name are answered with %v", err)
		}
	})
}

// AG01: What the schema refuses of an access is refused of a catalogue from git as well, which no schema saw.
func TestWhatTheSchemaRefusesOfAccessTheControllersRefuse(t *testing.T) {
	for i, one := range append(accessRules(), accessMaxima()...) {
		t.Run(fmt.Sprintf("%d %s", i, one.key()), func(t *testing.T) {
			if place, err := readAccess(t, one.good); err != nil {
				t.Errorf("%s: refused at %s although it is right: %v", one.why, place, err)
			}
			if _, err := readAccess(t, one.bad); err == nil {
				t.Errorf("%s: accepted although it is wrong", one.why)
			}
		})
	}
}

// readAccess checks the version of a catalogue as controllers do.
func readAccess(t *testing.T, changed edits) (place string, err error) {
	t.Helper()
	object := changed.on(t, parse(t, bases["AddonCatalogue"]))
	catalogue := &v1.AddonCatalogue{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, catalogue); err != nil {
		return "the whole", err
	}
	return rights.CheckVersion(&catalogue.Spec.Addons[0].Versions[0])
}

// AG01: With rules that pass the floor an agent makes its own ConfigMap by server-side apply and its own Lease by PUT, and none of
// another name. Red when API servers evaluate rules with names otherwise than package rights says.
func TestWhatHasANameInItsRuleCanBeMade(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		agent := agentOf(t, config, v1.Access{Name: "hub", Rules: []v1.AccessRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"addon-$(installation)-a"}, Verbs: []string{"create", "patch"}},
			{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"addon-$(installation)-beat"},
				Verbs: []string{"create", "update"},
			},
		}})
		configMaps, leases := agent.CoreV1().ConfigMaps("default"), agent.CoordinationV1().Leases("default")
		apply := func(name string) error {
			_, err := configMaps.Apply(t.Context(), corev1apply.ConfigMap(name, "default"), metav1.ApplyOptions{FieldManager: "agent"})
			return err
		}
		put := func(name string) error {
			_, err := leases.Update(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
			return err
		}
		post := func(name string) error {
			_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
		expect.Eventually(t, expect.Patience, func() error { // authorizers learn of a binding a moment after it was written
			return apply("addon-web-a")
		})
		if err := put("addon-web-beat"); err != nil {
			t.Errorf("its Lease is answered with %v", err)
		}
		for why, err := range map[string]error{
			"another installation's ConfigMap": apply("addon-other-a"),
			"another installation's Lease":     put("addon-other-beat"),
			"a ConfigMap by POST":              post("addon-web-b"),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s is answered with %v", why, err)
			}
		}
	})
}

// agentOf gives a user of namespace default the rules of an access, of installation web.
func agentOf(t *testing.T, config *rest.Config, asked v1.Access) kubernetes.Interface {
	t.Helper()
	rules, err := rights.Rules(asked, "web")
	expect.NoError(t, err)
	admin := kubernetes.NewForConfigOrDie(config)
	name := metav1.ObjectMeta{Name: rights.AgentName("web", asked.Name)}
	if _, err := admin.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	user := rights.CertificateUser("default", "a", "web", "0f")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: name, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asAgent := rest.CopyConfig(config)
	asAgent.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: rights.CertificateGroups("default", "a", "web")}
	return kubernetes.NewForConfigOrDie(asAgent)
}
