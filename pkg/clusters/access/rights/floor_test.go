package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// read makes an access of YAML without its name.
func read(t *testing.T, text string) v1.Access {
	t.Helper()
	access := v1.Access{Name: "hub"}
	if err := yaml.UnmarshalStrict([]byte(text), &access); err != nil {
		t.Fatal(err)
	}
	return access
}

func version(asked ...v1.Access) *v1.AddonVersion {
	return &v1.AddonVersion{Template: &v1.Template{Access: asked}}
}

// many texts of one beginning, as a YAML list.
func many(count int, begin string) string {
	var texts []string
	for at := range count {
		texts = append(texts, fmt.Sprintf("%s%d", begin, at))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// refused expects an error at a place below the access, from CheckVersion and from Rules: the latter is all that a
// merged object meets that was written past the former.
func refused(t *testing.T, access v1.Access, place, says string) {
	t.Helper()
	other := v1.Access{Name: "other"}
	field, err := CheckVersion(version(other, access))
	if err == nil || field != "template.access[1]."+place || !strings.Contains(err.Error(), says) {
		t.Errorf("it is refused at %q with %v, and not at template.access[1].%s with %q", field, err, place, says)
	}
	rules, err := Rules(access, "web")
	if err == nil || !strings.HasPrefix(err.Error(), place+": ") || len(rules) > 0 {
		t.Errorf("its Role has %v, error %v, and not one at %s", rules, err, place)
	}
}

// AG01: What is beyond the floor is refused with its place, where catalogues are read and where Roles are made.
func TestWhatNoAgentMayHave(t *testing.T) {
	const own = "[addon-$(installation)-a]"
	for _, row := range []struct{ why, groups, resources, names, verbs, place, says string }{
		{"Secrets", `[""]`, "[secrets]", "[]", "[get]", "resources[0]", `rights for "secrets" of the core group`},
		{"a Secret by name", `[""]`, "[secrets]", own, "[get]", "resources[0]", "can't get rights for"},
		{"the outbox by hand", `[""]`, "[secrets]", "[addon-out-$(installation)]", "[get, update, patch]", "resources[0]", "can't get rights for"},
		{"Secrets behind what may be", `[""]`, "[configmaps, secrets]", "[]", "[get]", "resources[1]", "can't get rights for"},
		{"Secrets by another group of the rule", `[policy.example.com, ""]`, "[secrets]", "[]", "[get]", "resources[0]", "can't get rights for"},
		{"pods", `[""]`, "[pods]", "[]", "[list]", "resources[0]", "can't get rights for"},
		{"a shell", `[""]`, "[pods/exec]", "[]", "[create]", "resources[0]", "subresources are status, scale and finalizers"},
		{"logs", `[""]`, "[pods/log]", "[]", "[get]", "resources[0]", "subresources are status, scale and finalizers"},
		{"a token", `[""]`, "[serviceaccounts/token]", "[]", "[create]", "resources[0]", "subresources are status, scale and finalizers"},
		{"accounts", `[""]`, "[serviceaccounts]", "[]", "[get]", "resources[0]", "can't get rights for"},
		{"services, to take their traffic", `[""]`, "[services]", "[]", "[patch]", "resources[0]", "can't get rights for"},
		{"a namespace's status", `[""]`, "[namespaces/status]", "[]", "[patch]", "resources[0]", "can't get rights for"},
		{"subresources of what may be", `[""]`, "[configmaps/status]", own, "[patch]", "resources[0]", "can't get rights for"},
		{"claims", `[""]`, "[persistentvolumeclaims]", "[]", "[get]", "resources[0]", "can't get rights for"},
		{"candidates of elections", "[coordination.k8s.io]", "[leasecandidates]", "[]", "[get]", "resources[0]", "can't get rights for"},
		{"ConfigMaps of a group that has none", "[coordination.k8s.io]", "[configmaps]", own, "[get]", "resources[0]", "can't get rights for"},

		{"all groups", `["*"]`, "[policies]", "[]", "[get]", "apiGroups[0]", "wildcard"},
		{"all resources", "[policy.example.com]", `["*"]`, "[]", "[get]", "resources[0]", "wildcard"},
		{"all subresources", "[policy.example.com]", `["policies/*"]`, "[]", "[get]", "resources[0]", "subresources are status, scale and finalizers"},
		{"a subresource of all", "[policy.example.com]", `["*/scale"]`, "[]", "[get]", "resources[0]", "wildcard"},
		{"all verbs", "[policy.example.com]", "[policies]", "[]", `["*"]`, "verbs[0]", "is not one of get, list"},
		{"all names", "[policy.example.com]", "[policies]", `["*"]`, "[get]", "resourceNames[0]", "is not the name"},
		{"the name of requests without one", "[policy.example.com]", "[policies]", `[a, ""]`, "[create]", "resourceNames[1]", "is not the name"},
		{"a mark that nothing fills in", "[policy.example.com]", "[policies]", "[a-$(cluster)]", "[get]", "resourceNames[0]", "is not the name"},
		{"a name too long with a long installation", "[a.example.com]", "[as]", "[" + strings.Repeat("$(installation).", 4) + "a]", "[get]", "resourceNames[0]", "is not the name"},
		{"a path in a name", "[policy.example.com]", "[policies]", "[a/b]", "[get]", "resourceNames[0]", "is not the name"},

		{"escalate", "[policy.example.com]", "[policies]", "[]", "[get, escalate]", "verbs[1]", "is not one of"},
		{"bind", "[policy.example.com]", "[policies]", "[]", "[bind]", "verbs[0]", "is not one of"},
		{"impersonate", "[policy.example.com]", "[policies]", "[]", "[impersonate]", "verbs[0]", "is not one of"},
		{"all at once", "[policy.example.com]", "[policies]", "[]", "[deletecollection]", "verbs[0]", "is not one of"},
		{"one verb more than there are", "[policy.example.com]", "[policies]", "[]", "[get, list, watch, create, update, delete, deletecollection, patch]",
			"verbs[6]", `"deletecollection" is not one of`},
		{"a verb in upper case", "[policy.example.com]", "[policies]", "[]", "[GET]", "verbs[0]", "is not one of"},
		{"a verb with a blank", "[policy.example.com]", "[policies]", "[]", `["get "]`, "verbs[0]", "is not one of"},
		{"a resource in upper case", `[""]`, "[ConfigMaps]", "[]", "[get]", "resources[0]", "lower case"},
		{"a resource with a blank", `[""]`, `[" secrets"]`, "[]", "[get]", "resources[0]", "lower case"},
		{"a resource of lines", `[""]`, `["configmaps\nsecrets"]`, "[]", "[get]", "resources[0]", "lower case"},
		{"a group in upper case", "[Apps.example.com]", "[policies]", "[]", "[get]", "apiGroups[0]", "lower case"},
		{"a group with a blank", `[" "]`, "[secrets]", "[]", "[get]", "apiGroups[0]", "lower case"},
		{"a subresource of a subresource", "[policy.example.com]", "[policies/status/scale]", "[]", "[get]", "resources[0]", "subresources are status"},
		{"finalizers of workloads", "[apps]", "[deployments/finalizers]", "[]", "[update]", "apiGroups[0]", "can't get rights for group"},
		{"finalizers of the platform's kinds", "[kubermatic.k8c.io]", "[clusters/finalizers]", "[]", "[update]", "apiGroups[0]", "can't get rights for group"},
		{"finalizers of Pods", `[""]`, "[pods/finalizers]", "[]", "[update]", "resources[0]", "can't get rights for"},
		{"finalizers of what may be", `[""]`, "[configmaps/finalizers]", own, "[update]", "resources[0]", "can't get rights for"},
		{"the finalizers of namespaces", `[""]`, "[namespaces/finalize]", "[]", "[update]", "resources[0]", "subresources are status, scale and finalizers"},
		{"an empty subresource", "[policy.example.com]", "[policies/]", "[]", "[get]", "resources[0]", "subresources are status"},

		{"ConfigMaps, written without names", `[""]`, "[configmaps]", "[]", "[get, patch]", "resourceNames", "need resourceNames"},
		{"ConfigMaps of others", `[""]`, "[configmaps]", "[addon-$(installation)-a, ca-bundle]", "[update]", "resourceNames[1]", "does not begin with"},
		{"ConfigMaps of an installation by its name", `[""]`, "[configmaps]", "[addon-web-a]", "[delete]", "resourceNames[0]", "does not begin with"},
		{"ConfigMaps made", `[""]`, "[configmaps]", "[]", "[create]", "resourceNames", "need resourceNames"},
		{"another installation's", `[""]`, "[configmaps]", "[addon-$(installation)-engine-report]", "[update]", "resourceNames[0]", "could be the name of another installation's object"},
		{"twice the installation", `[""]`, "[configmaps]", "[addon-$(installation)-$(installation)]", "[update]", "resourceNames[0]", "could be the name of another installation's object"},
		{"the beginning alone", `[""]`, "[configmaps]", "[addon-$(installation)-]", "[create]", "resourceNames[0]", "is not the name"},
		{"events beside ConfigMaps", `[""]`, "[events, configmaps]", "[]", "[create]", "resourceNames", "need resourceNames"},
		{"leaders of others", "[coordination.k8s.io]", "[leases]", "[]", "[update]", "resourceNames", "need resourceNames"},
		{"another agent's Lease", "[coordination.k8s.io]", "[leases]", "[agent]", "[patch]", "resourceNames[0]", "does not begin with"},

		{"no group", "[]", "[policies]", "[]", "[get]", "apiGroups", "there are 0"},
		{"no resource", "[a.example.com]", "[]", "[]", "[get]", "resources", "there are 0"},
		{"no verb", "[a.example.com]", "[as]", "[]", "[]", "verbs", "there are 0"},
		{"too many groups", many(17, "a.b"), "[as]", "[]", "[get]", "apiGroups", "there are 17"},
		{"too many resources", "[a.example.com]", many(33, "a"), "[]", "[get]", "resources", "there are 33"},
		{"too many names", "[a.example.com]", "[as]", many(33, "a"), "[get]", "resourceNames", "there are 33"},
		{"too many verbs", "[a.example.com]", "[as]", "[]", "[get, list, get, list, get, list, get, list]", "verbs", "there are 8"},
	} {
		t.Run(row.why, func(t *testing.T) {
			access := read(t, fmt.Sprintf("rules: [{apiGroups: [a.example.com], resources: [as], verbs: [get]}, "+
				"{apiGroups: %s, resources: %s, resourceNames: %s, verbs: %s}]", row.groups, row.resources, row.names, row.verbs))
			refused(t, access, "rules[1]."+row.place, row.says)
		})
	}
}

// AG01: The platform's kinds, rights, workloads and whatever acts with more rights than its writer has are nobody's,
// exact and below.
func TestGroupsThatNoAgentMayHave(t *testing.T) {
	groups := slices.Clone(denied)
	for _, group := range denied {
		groups = append(groups, "any."+group)
	}
	groups = append(groups,
		"apps", "batch", "autoscaling", "policy", "extensions", "events", "core", "v1",
		"rbac.authorization.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "scheduling.k8s.io", "node.k8s.io", "storage.k8s.io",
		"storagemigration.k8s.io", "resource.k8s.io", "networking.k8s.io", "discovery.k8s.io", "internal.apiserver.k8s.io", "metrics.k8s.io",
		"gateway.networking.k8s.io", "snapshot.storage.k8s.io", "autoscaling.k8s.io", "cluster.k8s.io", "any.coordination.k8s.io",
		"kubermatic.k8c.io", "ee.kubermatic.k8c.io", "apps.kubermatic.k8c.io", "operatingsystemmanager.k8c.io", "addons.kubermatic.k8c.io",
		"cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "addons.cluster.x-k8s.io", "jobset.x-k8s.io",
		"elasticsearch.k8s.elastic.co", "postgresql.cnpg.io", "kafka.strimzi.io", "core.strimzi.io", "rabbitmq.com", "grafana.integreatly.org",
		"actions.github.com", "actions.summerwind.dev", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "helm.cattle.io", "monitoring.coreos.com", "operators.coreos.com",
		"etcd.database.coreos.com", "dex.coreos.com", "subresources.kubevirt.io", "cdi.kubevirt.io", "acme.cert-manager.io",
		"crd.projectcalico.org", "networking.istio.io", "traefik.containo.us", "k8s.cni.cncf.io", "iam.services.k8s.aws",
	)
	for _, group := range groups {
		access := v1.Access{Name: "hub", Rules: []v1.AccessRule{{
			APIGroups: []string{group}, Resources: []string{"policies"}, Verbs: []string{"get"},
		}}}
		t.Run(group, func(t *testing.T) { refused(t, access, "rules[0].apiGroups[0]", "can't get rights for group") })
	}
}

// TestWhatAnAgentMayHave turns red when the floor takes away what agents need.
func TestWhatAnAgentMayHave(t *testing.T) {
	for _, row := range []struct{ why, access string }{
		{"custom kinds", "rules: [{apiGroups: [policy.example.com], resources: [policies, policies/status], verbs: [get, list, watch, patch]}]"},
		{"and all that may be done", "rules: [{apiGroups: [a.io], resources: [as/scale], verbs: [get, list, watch, create, update, patch, delete]}]"},
		{"finalizers of custom kinds", "rules: [{apiGroups: [policy.example.com], resources: [policies/finalizers], verbs: [update]}]"},
		{"of two groups", "rules: [{apiGroups: [a.io, work.open-cluster-management.io], resources: [as], verbs: [get]}]"},
		{"of a group that only looks like the platform's", "rules: [{apiGroups: [notk8c.io, k8c.io.example.com, wgpolicyk8s.io], resources: [as], verbs: [get]}]"},
		{"by names", "rules: [{apiGroups: [a.io], resources: [as], resourceNames: [a.b-1, $(installation), all-$(installation).x], verbs: [get, delete]}]"},
		{"kinds that are called as others' are", "rules: [{apiGroups: [a.io], resources: [secrets, pods], verbs: [get]}]"},
		{"ConfigMaps to read", `rules: [{apiGroups: [""], resources: [configmaps, events], verbs: [get, list, watch]}]`},
		{"its ConfigMaps", `rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [addon-$(installation)-a], verbs: [get, create, patch, delete]}]`},
		{"events", `rules: [{apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}]`},
		{"Leases to read", "rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}]"},
		{"its Lease", "rules: [{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [addon-$(installation)-beat], verbs: [get, create, update]}]"},
		{"nothing", "{}"},
		{"an outbox alone", "outbox: true"},
		{"a certificate", "{type: Certificate, approval: Manual, lifetime: 720h, outbox: true}"},
		{"a certificate by the name of the signer", "{type: Certificate, signerName: kubernetes.io/kube-apiserver-client, rules: [{apiGroups: [a.io], resources: [as], verbs: [get]}]}"},
		{"only the API server's own signer", "{type: Certificate, signerName: vpn.example.com/client.v1, approval: Automatic, lifetime: 1h}"},
		{"as many as a rule may have", "rules: [{apiGroups: " + many(4, "a.b") + ", resources: " + many(32, "a") + ", resourceNames: [a, b, c, d], verbs: [get, list]}]"},
	} {
		t.Run(row.why, func(t *testing.T) {
			access := read(t, row.access)
			if field, err := CheckVersion(version(access)); err != nil {
				t.Errorf("it is refused at %s: %v", field, err)
			}
			if _, err := Rules(access, strings.Repeat("a", 63)); err != nil {
				t.Errorf("there is no Role: %v", err)
			}
		})
	}
}

// AG01: What the schema refuses is refused without it.
func TestAccessIsHeldToTheSchemaWithoutIt(t *testing.T) {
	const rule = "{apiGroups: [a.io], resources: [as], verbs: [get]}"
	for _, row := range []struct{ why, access, place, says string }{
		{"a path", "name: ../a", "name", "not a DNS label"},
		{"a name in upper case", "name: Hub", "name", "not a DNS label"},
		{"no name", "name: ''", "name", "not a DNS label"},
		{"a dot", "name: a.b", "name", "not a DNS label"},
		{"a long name", "name: " + strings.Repeat("a", 41), "name", "at most 40"},
		{"the Secret of a hosted part", "name: managed-kubeconfig", "name", "hosted parts"},
		{"an unknown type", "type: Password", "type", "neither Token nor"},
		{"an unknown approval", "{type: Certificate, approval: Always}", "approval", "neither Automatic nor"},
		{"a signer of tokens", "signerName: a.example.com/b", "signerName", "only with type Certificate"},
		{"a signer of tokens by type", "{type: Token, signerName: kubernetes.io/kube-apiserver-client}", "signerName", "only with type Certificate"},
		{"an approval of tokens", "approval: Manual", "approval", "only with type Certificate"},
		{"a short life", "lifetime: 59m59s", "lifetime", "it is 59m59s"},
		{"no life", "lifetime: 0s", "lifetime", "it is 0s"},
		{"a long life", "lifetime: 720h1s", "lifetime", "1h to 720h"},
		{"too many rules", "rules: [" + strings.Repeat(rule+", ", 16) + rule + "]", "rules", "there are 17"},
		{"rules at another signer", "{type: Certificate, signerName: a.example.com/b, rules: [" + rule + "]}", "rules", "use signer kubernetes.io/kube-apiserver-client"},
		{"an outbox at another signer", "{type: Certificate, signerName: a.example.com/b, outbox: true}", "outbox", "use signer kubernetes.io/kube-apiserver-client"},
		{"nodes' certificates", "{type: Certificate, signerName: kubernetes.io/kube-apiserver-client-kubelet}", "signerName", "own signers"},
		{"servers' certificates", "{type: Certificate, signerName: kubernetes.io/kubelet-serving}", "signerName", "own signers"},
		{"certificates for whatever", "{type: Certificate, signerName: kubernetes.io/legacy-unknown}", "signerName", "own signers"},
		{"a signer below Kubernetes", "{type: Certificate, signerName: a.kubernetes.io/b}", "signerName", "own signers"},
		{"a signer in upper case", "{type: Certificate, signerName: Kubernetes.io/kubelet-serving}", "signerName", "of the form <domain>/<name>"},
		{"a signer without a domain", "{type: Certificate, signerName: kubernetes/a}", "signerName", "of the form <domain>/<name>"},
		{"a signer without a name", "{type: Certificate, signerName: a.example.com}", "signerName", "of the form <domain>/<name>"},
		{"all signers", "{type: Certificate, signerName: a.example.com/*}", "signerName", "of the form <domain>/<name>"},
		{"a long signer", "{type: Certificate, signerName: a.io/" + strings.Repeat("a", 567) + "}", "signerName", "of the form <domain>/<name>"},
		{
			"more combinations than anybody compares",
			"rules: [" + rule + ", {apiGroups: " + many(4, "a.b") + ", resources: " + many(32, "a") + ", resourceNames: [a, b, c, d], verbs: [get, list]}]",
			"rules[1]", "more than 1024 combinations",
		},
	} {
		t.Run(row.why, func(t *testing.T) { refused(t, read(t, row.access), row.place, row.says) })
	}
}

// AG01: What holds among the accesses of a version, without the schema.
func TestAccessesOfAVersion(t *testing.T) {
	five := []v1.Access{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	if field, err := CheckVersion(version(five...)); err == nil || field != "template.access" {
		t.Errorf("five are refused at %q with %v", field, err)
	}
	if field, err := CheckVersion(version(five[:4]...)); err != nil {
		t.Errorf("four are refused at %s: %v", field, err)
	}
	if field, err := CheckVersion(version(five[0], five[1], five[0])); err == nil || field != "template.access[2].name" {
		t.Errorf("two of one name are refused at %q with %v", field, err)
	}
	for _, none := range []*v1.AddonVersion{{}, version()} {
		if field, err := CheckVersion(none); err != nil {
			t.Errorf("a version that asks for nothing is refused at %s: %v", field, err)
		}
	}
}

// TestRoleOfAnAccess turns red when a Role has other rules than its version asks for, with the installation's name.
func TestRoleOfAnAccess(t *testing.T) {
	access := read(t, `{outbox: true, lifetime: 2h, rules: [
		{apiGroups: [a.io], resources: [as, as/status], verbs: [get, list]},
		{apiGroups: [""], resources: [configmaps], resourceNames: [addon-$(installation)-a, addon-$(installation)-b.c], verbs: [patch]}]}`)
	if access.Lifetime.Duration != 2*time.Hour {
		t.Fatal(access.Lifetime)
	}
	before := access.DeepCopy()
	rules, err := Rules(access, "web.1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{
		{APIGroups: []string{"a.io"}, Resources: []string{"as", "as/status"}, Verbs: []string{"get", "list"}},
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"},
			ResourceNames: []string{"addon-web.1-a", "addon-web.1-b.c"},
		},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update", "patch"}, ResourceNames: []string{"addon-out-web.1"}},
	}, rules); diff != "" {
		t.Error(diff)
	}
	rules[0].Verbs[0], rules[1].ResourceNames[0] = "delete", "b"
	if diff := cmp.Diff(before, &access); diff != "" {
		t.Errorf("who changes a Role changes the catalogue: %s", diff)
	}
	signed := v1.Access{Name: "vpn", Type: v1.AccessByCertificate, SignerName: "a.example.com/b", Lifetime: &metav1.Duration{Duration: time.Hour}}
	if rules, err := Rules(signed, "web"); err != nil || rules != nil {
		t.Errorf("a credential for another signer has rules %v, %v", rules, err)
	}
	for _, name := range []string{"", "a*", "A", "a/b", strings.Repeat("a", 64)} {
		if rules, err := Rules(access, name); err == nil || rules != nil {
			t.Errorf("installation %q has a Role: %v", name, rules)
		}
	}
}
