package rights

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// request is one that an API server authorizes. Those that create by POST, and list, have no name.
type request struct{ verb, group, resource, name string }

// dangers are requests that no agent of installation "web" may make, whatever the platform lists.
var dangers = []request{
	{"get", "", "secrets", "internal-admin-kubeconfig"}, {"list", "", "secrets", ""}, {"watch", "", "secrets", ""},
	{"get", "", "secrets", "addon-access-0123456789abcdef-hub"}, {"get", "", "secrets", "addon-out-other"}, {"create", "", "secrets", ""},
	{"delete", "", "secrets", "addon-out-web"}, {"list", "", "secrets", "addon-out-web"},
	{"create", "", "pods", ""}, {"get", "", "pods", "etcd-0"}, {"create", "", "pods/exec", "etcd-0"}, {"get", "", "pods/exec", "etcd-0"},
	{"get", "", "pods/log", "etcd-0"}, {"create", "", "pods/portforward", "etcd-0"}, {"patch", "", "pods/ephemeralcontainers", "etcd-0"},
	{"create", "", "pods/eviction", "etcd-0"}, {"create", "", "bindings", ""}, {"get", "", "services/proxy", "etcd"},
	{"create", "", "serviceaccounts/token", "default"}, {"create", "", "serviceaccounts", ""}, {"impersonate", "", "serviceaccounts", "default"},
	{"update", "", "services", "apiserver-external"}, {"patch", "", "endpoints", "apiserver-external"}, {"get", "", "nodes", "a"},
	{"delete", "", "namespaces", "cluster-a"}, {"patch", "", "namespaces/finalize", "cluster-a"}, {"delete", "", "persistentvolumeclaims", "data-etcd-0"},
	{"create", "", "configmaps", ""}, {"patch", "", "configmaps", "ca-bundle"}, {"update", "", "configmaps", "addon-other-a"},
	{"delete", "", "configmaps", "addon-"}, {"patch", "", "configmaps", "addon-web"}, {"delete", "", "configmaps", "addon-webs-a"},
	{"deletecollection", "", "configmaps", ""}, {"deletecollection", "policy.example.com", "policies", ""},
	{"create", "coordination.k8s.io", "leases", ""}, {"update", "coordination.k8s.io", "leases", "leader"},
	{"delete", "coordination.k8s.io", "leases", "addon-other-beat"},
	{"create", "rbac.authorization.k8s.io", "roles", ""}, {"create", "rbac.authorization.k8s.io", "rolebindings", ""},
	{"escalate", "rbac.authorization.k8s.io", "roles", "a"}, {"bind", "rbac.authorization.k8s.io", "clusterroles", "cluster-admin"},
	{"patch", "apps", "deployments", "apiserver"}, {"update", "apps", "deployments/scale", "apiserver"}, {"create", "batch", "jobs", ""},
	{"update", "", "pods/finalizers", "etcd-0"}, {"update", "", "configmaps/finalizers", "ca-bundle"}, {"update", "apps", "deployments/finalizers", "apiserver"},
	{"update", "kubermatic.k8c.io", "clusters/finalizers", "a"}, {"update", "cluster.x-k8s.io", "machines/finalizers", "a"},
	{"create", "policy", "poddisruptionbudgets", ""}, {"create", "autoscaling", "horizontalpodautoscalers", ""},
	{"delete", "networking.k8s.io", "networkpolicies", "etcd"}, {"patch", "discovery.k8s.io", "endpointslices", "a"},
	{"create", "authentication.k8s.io", "tokenreviews", ""}, {"create", "authorization.k8s.io", "subjectaccessreviews", ""},
	{"create", "certificates.k8s.io", "certificatesigningrequests", ""}, {"update", "certificates.k8s.io", "certificatesigningrequests/approval", "a"},
	{"create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", ""}, {"patch", "apiextensions.k8s.io", "customresourcedefinitions", "a"},
	{"get", "kubermatic.k8c.io", "clusters", "a"}, {"patch", "kubermatic.k8c.io", "addoninstallations/status", "a"},
	{"get", "cluster.x-k8s.io", "clusters", "a"}, {"patch", "controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes/scale", "a"},
	{"create", "kustomize.toolkit.fluxcd.io", "kustomizations", ""}, {"create", "cert-manager.io", "certificates", ""},
	{"create", "monitoring.coreos.com", "servicemonitors", ""}, {"delete", "cilium.io", "ciliumnetworkpolicies", "a"},
	{"create", "velero.io", "restores", ""}, {"create", "kubevirt.io", "virtualmachines", ""}, {"create", "keda.sh", "scaledobjects", ""},
}

// allows is the API server's evaluation of a rule (RuleAllows, and evaluation_helpers.go of its rbac/v1). Unlike Covers,
// it takes the name "" of a rule for requests without a name.
func allows(rule rbacv1.PolicyRule, asked request) bool {
	_, sub, hasSub := strings.Cut(asked.resource, "/")
	has := func(list []string, texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return slices.Contains(list, text) })
	}
	return has(rule.Verbs, "*", asked.verb) && has(rule.APIGroups, "*", asked.group) &&
		(has(rule.Resources, "*", asked.resource) || hasSub && has(rule.Resources, "*/"+sub)) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, asked.name))
}

// harmless expects that what passes CheckVersion passes Rules, and allows no danger.
func harmless(t *testing.T, access v1.Access) (passed bool) {
	t.Helper()
	field, refusal := CheckVersion(version(access))
	rules, err := Rules(access, "web")
	if (refusal == nil) != (err == nil) {
		t.Fatalf("CheckVersion says %s: %v, Rules says %v, of %+v", field, refusal, err, access)
	}
	for _, rule := range rules {
		for _, danger := range dangers {
			if allows(rule, danger) {
				t.Fatalf("a rule that passes allows %+v: %+v", danger, rule)
			}
		}
	}
	return err == nil
}

// TestEvaluationOfRules turns red when the tests' own evaluation of a rule would not see a danger.
func TestEvaluationOfRules(t *testing.T) {
	for _, danger := range dangers {
		_, sub, hasSub := strings.Cut(danger.resource, "/")
		resources := [][]string{{danger.resource}, {"a", "*"}}
		if hasSub {
			resources = append(resources, []string{"*/" + sub})
		}
		for _, resource := range resources {
			for _, names := range [][]string{nil, {"a-b", danger.name}} {
				rule := rbacv1.PolicyRule{APIGroups: []string{"a.io", danger.group}, Resources: resource, ResourceNames: names, Verbs: []string{danger.verb}}
				if !allows(rule, danger) {
					t.Errorf("%+v does not allow %+v", rule, danger)
				}
			}
		}
	}
	if allows(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}, request{"get", "", "pods/log", "a"}) {
		t.Error("a resource allows its subresources")
	}
}

// words that random rules are made of: those of the dangers, those that may be, and ways to write them otherwise.
type vocabulary struct{ groups, resources, names, verbs []string }

func dangerousWords() vocabulary {
	found := vocabulary{
		groups:    []string{"", "policy.example.com", "a.io", "events.k8s.io", "coordination.k8s.io", "*", "Apps", " "},
		resources: []string{"policies", "policies/status", "configmaps", "events", "leases", "leases/status", "policies/finalizers", "*", "*/*", "*/scale", "Secrets"},
		names: []string{
			"", "*", "a", "addon-$(installation)-a", "addon-$(installation)-", "addon-$(installation)s-a", "addon-web-a", "$(installation)", "addon-*",
		},
		verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "*", "GET", "use"},
	}
	for _, danger := range dangers {
		found.groups = append(found.groups, danger.group)
		found.resources = append(found.resources, danger.resource)
		found.names = append(found.names, danger.name)
		found.verbs = append(found.verbs, danger.verb)
	}
	return found
}

// some of the words, mostly of the first ones, which are those that may be.
func some(chance *rand.Rand, words []string, least, most, first int) []string {
	var chosen []string
	for range least + chance.IntN(most-least+1) {
		reach := len(words)
		if chance.IntN(8) > 0 {
			reach = first
		}
		chosen = append(chosen, words[chance.IntN(reach)])
	}
	return chosen
}

// AG01: Whatever rules pass the floor, no dangerous request is allowed by them.
func TestNoRulesThatPassAreDangerous(t *testing.T) {
	words, passed := dangerousWords(), map[bool]int{}
	for seed := range uint64(30000) {
		chance := rand.New(rand.NewPCG(seed, 1))
		access := v1.Access{Name: "hub", Outbox: chance.IntN(2) == 0}
		for range 1 + chance.IntN(2) {
			access.Rules = append(access.Rules, v1.AccessRule{
				APIGroups: some(chance, words.groups, 1, 2, 5), Resources: some(chance, words.resources, 1, 2, 5),
				ResourceNames: some(chance, words.names[2:], 0, 2, 2), Verbs: some(chance, words.verbs, 1, 3, 7),
			})
		}
		passed[harmless(t, access)]++
	}
	if passed[true] < 1000 || passed[false] < 1000 {
		t.Errorf("of random rules %d pass and %d do not: it shows little", passed[true], passed[false])
	}
}

// FuzzCheckVersion turns red when rules end the process, or pass and allow what is dangerous.
func FuzzCheckVersion(f *testing.F) {
	f.Add("policy.example.com", "policies\npolicies/status", "", "get\nlist", "hub", "", false)
	f.Add("", "configmaps", "addon-$(installation)-a", "get\npatch", "hub", "", true)
	f.Add("coordination.k8s.io\n", "leases\nevents", "addon-$(installation)-a\naddon-web", "create", "hub", "", true)
	f.Add("*", "*", "*", "*", "a/b", "a.example.com/b", false)
	for _, danger := range dangers {
		f.Add(danger.group, danger.resource, danger.name, danger.verb, "hub", "", false)
	}
	f.Fuzz(func(t *testing.T, groups, resources, names, verbs, name, signer string, outbox bool) {
		access := v1.Access{Name: name, SignerName: signer, Outbox: outbox}
		if signer != "" {
			access.Type = v1.AccessByCertificate
		}
		rule := v1.AccessRule{APIGroups: strings.Split(groups, "\n"), Resources: strings.Split(resources, "\n"), Verbs: strings.Split(verbs, "\n")}
		if names != "" {
			rule.ResourceNames = strings.Split(names, "\n")
		}
		access.Rules = []v1.AccessRule{rule}
		harmless(t, access)
	})
}
