package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/expect"
)

const (
	// hub is the platform namespace of a seed's manager that gives out credentials; guest is the cluster namespace of who gets them.
	hub   = "hub"
	guest = "cluster-guest"
	// agent is what the access "hub" of installation "web" has; ours is its Secret.
	agent = "addon-agent-web-hub"
	ours  = "addon-access-0123456789abcdef-hub"

	accessType    = corev1.SecretType("addons.kubermatic.k8c.io/access.v1")
	foreignSigner = "example.com/foreign"
)

// withAgents are the chart's values of the manager at work here.
var withAgents = map[string]any{"agents": map[string]any{
	"enabled": true, "hub": map[string]any{"server": "https://hub.example.com"}, "approve": []any{certificatesv1.KubeAPIServerClientSignerName},
}}

// try is something that the manager does, with the policy that refuses it; "": it is what it is for.
type try struct {
	what   string
	do     func(ctx context.Context, manager client.Client) error
	policy string
	// says is in the refusal.
	says string
}

func agentsAccount(namespace, name string) *corev1.ServiceAccount {
	return ofCluster(&corev1.ServiceAccount{ObjectMeta: at(namespace, name), AutomountServiceAccountToken: new(false)})
}

func agentsRole(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	made := ofCluster(&rbacv1.Role{ObjectMeta: at(namespace, name), Rules: rules})
	made.Annotations = map[string]string{kubermaticv1.AnnotationAccessOf: "web"}
	return made
}

func agentsBinding(namespace, name string, change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
	made := ofCluster(&rbacv1.RoleBinding{
		ObjectMeta: at(namespace, name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	})
	if change != nil {
		change(made)
	}
	return made
}

func user(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
}

func agentsSecret(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	return ofCluster(secretOf(namespace, name, kind))
}

func holding(secret *corev1.Secret, data string) *corev1.Secret {
	secret.Data = map[string][]byte{"a": []byte(data)}
	return secret
}

func orphan[T client.Object](object T) T {
	object.SetOwnerReferences(nil)
	return object
}

// ownedBy is an object of an owner that is no Cluster of ours.
func ownedBy[T client.Object](object T, version, kind string) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "stolen", UID: "9a1b"}})
	return object
}

// requested is a request for an agent's client certificate, for a key that nobody keeps.
func requested(t *testing.T, name, signer string, usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return requestedFor(t, "system:addon:a:b:c:d", name, signer, usages...)
}

// requestedFor is a request for the certificate of a user.
func requestedFor(t *testing.T, user, name, signer string, usages ...certificatesv1.KeyUsage) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, key)
	expect.NoError(t, err)
	if len(usages) == 0 {
		usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer, Usages: usages,
		},
	}
}

func approving(name string) func(context.Context, client.Client) error {
	return func(ctx context.Context, manager client.Client) error {
		found := &certificatesv1.CertificateSigningRequest{}
		if err := manager.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		found.Status.Conditions = append(found.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", LastUpdateTime: metav1.Now(),
		})
		return manager.SubResource("approval").Update(ctx, found, client.DryRunAll)
	}
}

// token asks for a token of an account, bound to an object; "": to none.
func token(namespace, name, kind, bound string) func(context.Context, client.Client) error {
	return func(ctx context.Context, manager client.Client) error {
		request := &authenticationv1.TokenRequest{}
		if bound != "" {
			request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: bound}
		}
		return manager.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: at(namespace, name)}, request)
	}
}

// agentsMake are accounts, Roles and bindings for agents: what holds for all of them.
func agentsMake(kind string, made func(namespace, name string) client.Object) []try {
	policy := map[string]string{"account": "manager-accounts", "Role": "manager-roles", "binding": "manager-bindings"}[kind]
	tries := []try{
		{what: "make a " + kind, do: creating(made(guest, agent))},
		{what: "change a " + kind, do: updating(made(guest, "addon-agent-old-hub"))},
		{what: "delete a " + kind, do: deleting(made(guest, "addon-agent-old-hub"))},
		{what: "make a " + kind + " for a Cluster of Cluster API", do: creating(ownedBy(made(guest, agent), "cluster.x-k8s.io/v1beta2", "Cluster"))},
		{what: "make a " + kind + " of another name", do: creating(made(guest, "agent-web-hub")), policy: policy},
		{what: "make a " + kind + " without an owner", do: creating(orphan(made(guest, agent))), policy: policy},
		{what: "make a " + kind + " of another's Cluster", do: creating(ownedBy(made(guest, agent), "example.com/v1", "Cluster")), policy: policy},
		{what: "make a " + kind + " that no Cluster has", do: creating(ownedBy(made(guest, agent), "kubermatic.k8c.io/v1", "User")), policy: policy},
		{what: "take the owner of a " + kind + " away", do: updating(orphan(made(guest, "addon-agent-old-hub"))), policy: policy},
		{what: "change somebody's " + kind, do: updating(made(guest, "powerful")), policy: policy},
		{what: "delete somebody's " + kind, do: deleting(made(guest, "powerful")), policy: policy},
		{what: "delete a " + kind + " in kube-system", do: deleting(made("kube-system", "addon-agent-old-hub")), policy: policy},
		{what: "change a " + kind + " in the platform namespace", do: updating(made(hub, "addon-agent-old-hub")), policy: policy},
	}
	for _, place := range []string{"kube-system", "kube-public", hub, seedCatalogues, "default"} {
		tries = append(tries, try{what: "make a " + kind + " in namespace " + place, do: creating(made(place, agent)), policy: policy})
	}
	return tries
}

// widgets are what the platform lists for agents.
func widgets(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"widgets.example.com"}, Resources: []string{"widgets"}, Verbs: verbs}
}

// ownHand are the tries at all but the rules of Roles.
func ownHand(t *testing.T) []try {
	t.Helper()
	binds := func(what string, change func(*rbacv1.RoleBinding), policy string) try {
		return try{what: "bind " + what, do: creating(agentsBinding(guest, agent, change)), policy: policy}
	}
	subjects := func(of ...rbacv1.Subject) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Subjects = of }
	}
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	secrets, bindings, tokens := "manager-secrets", "manager-bindings", "manager-tokens"
	requests, approvals := "manager-requests", "manager-approvals"
	signer := certificatesv1.KubeAPIServerClientSignerName
	outbox := func(namespace string) *corev1.Secret {
		return agentsSecret(namespace, "addon-out-web", corev1.SecretTypeOpaque)
	}
	return slices.Concat(
		agentsMake("account", func(namespace, name string) client.Object { return agentsAccount(namespace, name) }),
		agentsMake("Role", func(namespace, name string) client.Object { return agentsRole(namespace, name, widgets("get")) }),
		agentsMake("binding", func(namespace, name string) client.Object { return agentsBinding(namespace, name, nil) }),
		[]try{
			binds("a certificate's user", subjects(user("system:addon:"+guest+":c:web:0")...), ""),
			binds("another Role", func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "powerful" }, bindings),
			binds("a ClusterRole", func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "ClusterRole" }, bindings),
			binds("nobody", subjects(), bindings),
			binds("two", subjects(account(guest, agent), user("system:addon:" + guest + ":c:web:0")[0]), bindings),
			binds("somebody's account", subjects(account(guest, "powerful")), bindings),
			binds("an account of another namespace", subjects(account("kube-system", agent)), bindings),
			binds("somebody", subjects(user("system:admin")...), bindings),
			binds("a certificate's user of another namespace", subjects(user("system:addon:"+guest+"-2:c:web:0")...), bindings),
			binds("a group of that name", subjects(rbacv1.Subject{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:addon:" + guest + ":c:web",
			}), bindings),

			{what: "ask for a token", do: token(guest, "addon-agent-old-hub", "Secret", ours)},
			{what: "ask for a token that nothing takes back", do: token(guest, "addon-agent-old-hub", "", ""), policy: tokens},
			{what: "ask for a token bound to another Secret", do: token(guest, "addon-agent-old-hub", "Secret", "addon-out-old"), policy: tokens},
			{what: "ask for a token bound to a Pod", do: token(guest, "addon-agent-old-hub", "Pod", ours), policy: tokens},
			{what: "ask for a token of somebody's account", do: token(guest, "powerful", "Secret", ours), policy: tokens},
			{what: "ask for a token of KKP's accounts", do: token("kube-system", "powerful", "Secret", ours), policy: tokens},
			{what: "ask for a token in kube-system", do: token("kube-system", "addon-agent-old-hub", "Secret", ours), policy: tokens},
			{what: "ask for a token in the platform namespace", do: token(hub, "addon-agent-old-hub", "Secret", ours), policy: tokens},
			{what: "ask for its own token", do: token(hub, seedManager, "Secret", ours), policy: tokens},
			{what: "ask for a token beside the catalogues", do: token(seedCatalogues, "addon-agent-old-hub", "Secret", ours), policy: tokens},
			{what: "ask for a token in namespace default", do: token("default", "addon-agent-old-hub", "Secret", ours), policy: tokens},

			{what: "keep a credential", do: creating(agentsSecret(guest, ours, accessType))},
			{what: "change a credential", do: updating(holding(agentsSecret(guest, "addon-access-0-old", accessType), "new"))},
			{what: "delete a credential", do: deleting(agentsSecret(guest, "addon-access-0-old", accessType))},
			{what: "keep a credential in a Secret of another type", do: creating(agentsSecret(guest, ours, corev1.SecretTypeOpaque)), policy: secrets},
			{what: "keep a credential in a Secret of another name", do: creating(agentsSecret(guest, "web-hub", accessType)), policy: secrets},
			{what: "keep a credential that no Cluster has", do: creating(orphan(agentsSecret(guest, ours, accessType))), policy: secrets},
			{what: "mint a token under such a name", do: creating(agentsSecret(guest, ours, corev1.SecretTypeServiceAccountToken)), policy: secrets},
			{what: "keep a credential in kube-system", do: creating(agentsSecret("kube-system", ours, accessType)), policy: secrets},
			{what: "keep a credential in the platform namespace", do: creating(agentsSecret(hub, ours, accessType)), policy: secrets},
			{what: "make an outbox", do: creating(outbox(guest))},
			{what: "put the owner of an outbox back", do: updating(holding(agentsSecret(guest, "addon-out-old", corev1.SecretTypeOpaque), "theirs"))},
			{what: "delete an outbox", do: deleting(agentsSecret(guest, "addon-out-old", corev1.SecretTypeOpaque))},
			{what: "make an outbox with something in it", do: creating(holding(outbox(guest), "planted")), policy: secrets},
			{what: "write into an outbox", do: updating(holding(agentsSecret(guest, "addon-out-old", corev1.SecretTypeOpaque), "planted")), policy: secrets},
			{what: "empty an outbox", do: updating(agentsSecret(guest, "addon-out-old", corev1.SecretTypeOpaque)), policy: secrets},
			{what: "make an outbox of another type", do: creating(agentsSecret(guest, "addon-out-web", "example.com/type")), policy: secrets},
			{what: "make an outbox beside the catalogues", do: creating(outbox(seedCatalogues)), policy: secrets},

			{what: "ask for a certificate", do: creating(requested(t, ours, signer))},
			{what: "take a request back", do: deleting(requested(t, "addon-access-own", signer))},
			{what: "ask for a certificate under another name", do: creating(requested(t, "thief", signer)), policy: requests},
			{what: "ask for a server's certificate", do: creating(requested(t, ours, signer, certificatesv1.UsageServerAuth)), policy: requests},
			{what: "ask for a certificate of both uses", do: creating(requested(t, ours, signer,
				certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth)), policy: requests},
			{what: "delete somebody's request", do: deleting(requested(t, "somebodys", signer)), policy: requests},
			{what: "approve its own request", do: approving("addon-access-own")},
			{what: "approve somebody's request of such a name", do: approving("addon-access-somebodys"), policy: approvals},
			{what: "approve a request of another name", do: approving("own"), policy: approvals},
			{what: "approve a request for another signer", do: approving("addon-access-foreign"), policy: approvals},
		},
	)
}

// beyondTheFloor are Roles that no agent gets.
func beyondTheFloor() []try {
	const (
		words, deep, builtIn  = "agents can't get wildcards", "agents can get only subresources", "of Kubernetes' own kinds"
		named, never          = "rights of agents to write ConfigMaps and Leases need resourceNames", "agents can't get rights for workloads"
		configMaps, leases    = "configmaps", "leases"
		coordination, example = "coordination.k8s.io", "example.com"
	)
	rule := func(groups, resources, names, verbs string) rbacv1.PolicyRule {
		list := func(text string) []string { return strings.Split(text, ",") }
		made := rbacv1.PolicyRule{APIGroups: list(groups), Resources: list(resources), Verbs: list(verbs)}
		if names != "" {
			made.ResourceNames = list(names)
		}
		return made
	}
	made := func(what string, rule rbacv1.PolicyRule, says string) try {
		one := try{what: what, do: creating(agentsRole(guest, agent, widgets("get"), rule)), says: says}
		if says != "" {
			one.policy = "agent-roles"
		}
		return one
	}
	outbox := func(annotation string, rule rbacv1.PolicyRule) func(context.Context, client.Client) error {
		role := agentsRole(guest, agent, rule)
		role.Annotations = map[string]string{kubermaticv1.AnnotationAccessOf: annotation}
		return creating(role)
	}
	tries := []try{
		made("kinds of its own, all verbs", rule(example, "widgets,widgets/status,widgets/scale,widgets/finalizers", "", "get,list,watch,create,update,patch,delete"), ""),
		made("reading ConfigMaps", rule("", configMaps, "", "get,list,watch"), ""),
		made("writing its ConfigMaps", rule("", configMaps, "addon-web-a,addon-web-b", "get,create,update,patch,delete"), ""),
		made("writing its Leases", rule(coordination, leases, "addon-web-a", "get,update"), ""),
		made("events", rule(",events.k8s.io", "events", "", "create,patch"), ""),
		made("its outbox", rule("", "secrets", "addon-out-web", "get,update,patch"), ""),

		made("any group", rule("*", "widgets", "", "get"), words),
		made("any group below one", rule("*.example.com", "widgets", "", "get"), words),
		made("any resource", rule(example, "*", "", "get"), words),
		made("any verb", rule(example, "widgets", "", "*"), words),
		made("any name", rule(example, "widgets", "*", "get"), words),
		made("all of a kind at once", rule(example, "widgets", "", "deletecollection"), words),
		made("verbs that make rights", rule(example, "widgets", "", "get,impersonate"), words),
		made("another subresource", rule(example, "widgets/exec", "", "create"), deep),
		made("the end of a name of a subresource", rule(example, "widgets/xfinalizers", "", "update"), deep),
		made("a path below a subresource", rule(example, "widgets/status/x", "", "get"), deep),

		made("Secrets", rule("", "secrets", "", "get"), builtIn),
		made("Secrets beside ConfigMaps", rule("", "configmaps,secrets", "", "get"), builtIn),
		made("Secrets beside another group", rule("example.com,", "secrets", "", "list"), builtIn),
		made("an outbox of somebody", rule("", "secrets", "addon-out-db", "get,update,patch"), builtIn),
		made("an outbox and another Secret", rule("", "secrets", "addon-out-web,internal-admin-kubeconfig", "get,update,patch"), builtIn),
		made("deleting its outbox", rule("", "secrets", "addon-out-web", "get,update,patch,delete"), builtIn),
		made("every outbox", rule("", "secrets", "", "get,update,patch"), builtIn),
		made("an outbox and ConfigMaps", rule("", "secrets,configmaps", "addon-out-web", "get"), builtIn),
		made("an outbox, and Secrets of another group", rule(",example.com", "secrets", "addon-out-web", "get"), builtIn),
		{what: "the outbox of another installation than the Role's name has", do: outbox("db", rule("", "secrets", "addon-out-db", "get")),
			policy: "agent-roles", says: builtIn},
		{what: "the outbox of a part of its installation's name", do: outbox("we", rule("", "secrets", "addon-out-we", "get")),
			policy: "agent-roles", says: builtIn},
		{what: "the outbox of no installation", do: outbox("", rule("", "secrets", "addon-out-", "get")), policy: "agent-roles", says: builtIn},
		made("accounts", rule("", "serviceaccounts", "", "get"), builtIn),
		made("Pods", rule("", "pods", "", "list"), builtIn),
		made("Services", rule("", "services", "", "get"), builtIn),
		made("namespaces", rule("", "namespaces", "", "get"), builtIn),
		made("the status of what has none", rule("", "configmaps/status", "", "get"), builtIn),
		made("what else is of the events' group", rule("events.k8s.io", "eventlogs", "", "get"), builtIn),
		made("what else is of the Leases' group", rule(coordination, "leasecandidates", "", "get"), builtIn),
		made("tokens", rule("", "serviceaccounts/token", "", "create"), deep),
		made("finalizers of Pods", rule("", "pods/finalizers", "", "update"), builtIn),
		made("finalizers of workloads", rule("apps", "deployments/finalizers", "", "update"), never),
		made("running programs", rule("", "pods/exec", "", "create"), deep),

		made("writing all ConfigMaps", rule("", configMaps, "", "update"), named),
		made("writing all Leases", rule(coordination, leases, "", "create"), named),
		made("writing a ConfigMap of another installation", rule("", configMaps, "addon-db-a", "update"), named),
		made("writing a ConfigMap that installation web-engine may have", rule("", configMaps, "addon-web-engine-report", "update"), named),
		made("writing a ConfigMap of one whose name goes on", rule("", configMaps, "addon-web2-a", "patch"), named),
		made("writing its ConfigMap and another", rule("", configMaps, "addon-web-a,cloud-config", "delete"), named),
		made("writing a Lease of another installation", rule(coordination, leases, "addon-db-a", "update"), named),
		{what: "writing ConfigMaps for an installation that the Role is not of", policy: "agent-roles", says: named,
			do: outbox("db", rule("", configMaps, "addon-db-a", "update"))},
		{what: "writing ConfigMaps for no installation", policy: "agent-roles", says: named, do: outbox("", rule("", configMaps, "addon--a", "update"))},

		{what: "more than before", policy: "agent-roles", says: builtIn,
			do: updating(agentsRole(guest, "addon-agent-old-hub", widgets("get"), rule("", "secrets", "", "get")))},
	}
	for _, group := range []string{
		"apps", "batch", "autoscaling", "policy", "extensions", "rbac.authorization.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
		"certificates.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "networking.k8s.io", "storage.k8s.io",
		"k8c.io", "kubermatic.k8c.io", "apps.kubermatic.k8c.io", "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "cert-manager.io",
	} {
		tries = append(tries, made("something of group "+group, rule("example.com,"+group, "things", "", "get"), never))
	}
	return append(tries, try{what: "as much as a version may ask for", do: creating(agentsRole(guest, agent, most()...))})
}

// most are the rules that cost an API server most: 1,024 combinations of group, resource, name and verb may be.
func most() (rules []rbacv1.PolicyRule) {
	for i := range 16 {
		rule := rbacv1.PolicyRule{Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "create"}}
		for k := range 16 {
			rule.APIGroups = append(rule.APIGroups, fmt.Sprintf("%s.group-%d-%d.example.com", strings.Repeat("a", 60), i, k))
		}
		rules = append(rules, rule)
	}
	return rules
}

// isOfManager holds for the rights and the policies of a manager: not for those about other users, whom another release here is asked for.
func isOfManager(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return true
	case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return strings.Contains(object.GetName(), ".manager-") || strings.Contains(object.GetName(), ".agent-")
	}
	return false
}

// agents makes what the tries are about, and what a chart in a namespace of its own has for its manager: once, since that refuses some of it.
func (w *world) agents(t *testing.T) {
	t.Helper()
	if w.hasAgents {
		return
	}
	w.hasAgents = true
	for _, name := range []string{hub, guest} {
		w.put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, place := range []string{guest, hub, "kube-system", "kube-public", seedCatalogues, "default"} {
		for _, name := range []string{"addon-agent-old-hub", "powerful"} {
			w.put(t, agentsAccount(place, name))
			w.put(t, agentsBinding(place, name, nil))
		}
		// A Role that is bound has to be there.
		for _, name := range []string{"addon-agent-old-hub", "powerful", agent, "agent-web-hub"} {
			w.put(t, agentsRole(place, name, widgets("get")))
		}
	}
	w.put(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent}, Rules: []rbacv1.PolicyRule{widgets("get")}})
	w.put(t, agentsSecret(guest, ours, accessType))
	w.put(t, holding(agentsSecret(guest, "addon-access-0-old", accessType), "old"))
	w.put(t, holding(orphan(agentsSecret(guest, "addon-out-old", corev1.SecretTypeOpaque)), "theirs"))
	leaving := agentsRole(guest, "addon-agent-leaving-hub", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	leaving.Finalizers = []string{"example.com/hold"}
	w.put(t, leaving)
	expect.Delete(t, w.admin, leaving)
	w.ask(t)
	_, rendered, err := charts.Render(seedManager, hub, withAgents)
	expect.NoError(t, err)
	for _, object := range rendered {
		if isOfManager(object) {
			w.put(t, object)
		}
	}
}

// inItsName is a client in the name of a seed's manager, that may do everything.
func (w *world) inItsName(t *testing.T, home string) client.Client {
	t.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + home + ":" + seedManager, Groups: []string{"system:masters", "system:authenticated"},
	}
	made, err := client.New(config, client.Options{Scheme: w.scheme})
	expect.NoError(t, err)
	return made
}

// ask makes requests, in the manager's name before its policies are there, and in an admin's.
func (w *world) ask(t *testing.T) {
	t.Helper()
	manager := w.inItsName(t, hub)
	signer := certificatesv1.KubeAPIServerClientSignerName
	for name, as := range map[string]client.Client{
		"addon-access-own": manager, "own": manager, "addon-access-somebodys": w.admin, "somebodys": w.admin,
	} {
		expect.Ensure(t, as, requested(t, name, signer))
	}
	expect.Ensure(t, manager, requested(t, "addon-access-foreign", foreignSigner))
}

func (w *world) put(t *testing.T, object client.Object) {
	t.Helper()
	expect.Ensure(t, w.admin, object.DeepCopyObject().(client.Object))
}

// list has the manager hold rules as the aggregation controller would, once ClusterRoles list them for agents.
func (w *world) list(t *testing.T, home string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: home + ":" + seedManager + ":agents"}}
	expect.Read(t, w.admin, role)
	role.Rules = rules
	expect.Update(t, w.admin, role)
}

// evaluation is "" where a try came out as it should: the policy named refused it, or with the right alone anybody did.
func evaluation(one try, err error, byRightsToo bool) string {
	got := outcome(err)
	switch {
	case one.policy == "" && got == allowed:
		return ""
	case one.policy != "" && got == byPolicy && strings.Contains(err.Error(), "'"+hub+"."+seedManager+"."+one.policy+"'") && strings.Contains(err.Error(), one.says):
		return ""
	case one.policy != "" && got == "refused" && byRightsToo:
		return ""
	}
	return fmt.Sprintf("%s: %v; the policy should be %q, and say %q", got, err, one.policy, one.says)
}

// expectTries tries all, and again those that came out wrong: policies and roles that were made a moment ago may not be followed yet.
func expectTries(t *testing.T, manager client.Client, tries []try, byRightsToo bool) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		var wrong []string
		tries = slices.DeleteFunc(slices.Clone(tries), func(one try) bool {
			reported := evaluation(one, one.do(t.Context(), manager), byRightsToo)
			if reported != "" {
				wrong = append(wrong, one.what+": "+reported)
			}
			return reported == ""
		})
		if len(wrong) > 0 {
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
}

// AG03, AG04: The manager makes for agents what they need, and nothing that is somebody else's: by its rights and policies, and by the
// policies alone where the platform listed everything and it holds every right. Then the floor holds too, which is checked in no code here.
func TestTheManagerGivesAgentsWhatIsTheirsOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.agents(t)
		manager := w.bearer(t, at(hub, seedManager), "")
		w.list(t, hub, widgets("get"))
		expectTries(t, manager, ownHand(t), true)
		expectEscalationRefused(t, manager)
		w.list(t, hub, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
		expectTries(t, manager, slices.Concat(ownHand(t), beyondTheFloor()), false)
		expectFloorForAll(t, w)
	})
}

// expectEscalationRefused holds what the API server itself refuses: a Role with what no ClusterRole lists, and a binding to one. AG03.
func expectEscalationRefused(t *testing.T, manager client.Client) {
	t.Helper()
	for what, object := range map[string]client.Object{
		"a Role with a verb that is not listed": agentsRole(guest, agent, widgets("get", "delete")),
		"a Role with a kind that is not listed": agentsRole(guest, agent, rbacv1.PolicyRule{
			APIGroups: []string{"example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"get"},
		}),
		"a binding to a Role with more": agentsBinding(guest, "addon-agent-leaving-hub", nil),
	} {
		err := creating(object)(t.Context(), manager)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// expectFloorForAll holds that nobody gives an agent more, in whose name its binding would hand it out, and that other Roles are no agents'.
func expectFloorForAll(t *testing.T, w *world) {
	t.Helper()
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	leaving := &rbacv1.Role{ObjectMeta: at(guest, "addon-agent-leaving-hub")}
	expectTries(t, w.admin, []try{
		{what: "an admin gives an agent Secrets", do: creating(agentsRole(guest, agent, secrets)), policy: "agent-roles"},
		{what: "an admin makes another Role", do: creating(agentsRole(guest, "other", secrets))},
		{what: "the cluster lets go of a Role that it deletes", do: merging(leaving, `{"metadata":{"finalizers":[]}}`)},
		{what: "an admin gives more by a Role that is being deleted", policy: "agent-roles",
			do: merging(leaving, `{"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}`)},
	}, false)
}
