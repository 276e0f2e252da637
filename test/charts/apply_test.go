package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const cluster = "charts"

func TestMain(m *testing.M) {
	other := fleet.ClusterOptions{Name: upgraded, Audit: usersOfJobs()}
	fleet.Main(m, fleet.ClusterOptions{Name: cluster, Controllers: true}, other) // its etcd is read
}

// connect gives a client of an API server whose platform namespace admits restricted pods only.
func connect(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(fleet.Shared().Cluster(cluster).Config, client.Options{})
	expect.NoError(t, err)
	folders := []string{"testdata/cert-manager", "testdata/prometheus-operator", "testdata/gateway-api", "../../charts/trellis-master/crds"}
	if err := fleet.InstallCRDs(t.Context(), fleet.Shared().Cluster(cluster).Config, folders...); err != nil {
		t.Fatal(err)
	}
	apply(t, c, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": namespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
		},
	}})
	return c
}

func apply(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetKind() == "Job" { // its pod can't be changed, so that Helm makes it anew
		deleted := c.Delete(t.Context(), object.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(deleted) != nil {
			t.Fatal(deleted)
		}
	}
	configuration := client.ApplyConfigurationFromUnstructured(object)
	options := []client.ApplyOption{client.FieldOwner("test"), client.ForceOwnership}
	if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Apply(t.Context(), configuration, options...); err != nil {
		t.Fatalf("applying %s %q: %v", object.GetKind(), object.GetName(), err)
	}
}

func TestChartsApply(t *testing.T) {
	for _, r := range slices.Concat(renderings, webRenderings) {
		t.Run(r.String(), func(t *testing.T) {
			c := connect(t)
			crds, objects := render(t, r)
			for _, object := range slices.Concat(crds, objects) {
				apply(t, c, object)
			}
			if err := dryRunPod(t.Context(), c, deployment(t, objects)); err != nil {
				t.Errorf("the manager's pod is refused: %v", err)
			}
		})
	}
}

// typed reads the only object of a kind into a Go type.
func typed[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) T {
	t.Helper()
	var found T
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == kind })
	if at < 0 {
		t.Fatalf("the chart has no %s", kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[at].Object, &found, true); err != nil {
		t.Fatalf("reading the %s: %v", kind, err)
	}
	return found
}

func deployment(t *testing.T, objects []*unstructured.Unstructured) appsv1.Deployment {
	t.Helper()
	return typed[appsv1.Deployment](t, objects, "Deployment")
}

// dryRunPod asks the API server whether it would admit a pod of the Deployment: pod security judges pods only.
func dryRunPod(ctx context.Context, c client.Client, deployment appsv1.Deployment) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: deployment.Name, Namespace: deployment.Namespace},
		Spec:       deployment.Spec.Template.Spec,
	}
	return c.Create(ctx, pod, client.DryRunAll)
}

func TestPodSecurityIsEnforced(t *testing.T) {
	c := connect(t)
	_, objects := render(t, renderings[0])
	account := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "ServiceAccount" })
	apply(t, c, objects[account]) // a pod without its account is refused before pod security looks at it
	loose := deployment(t, objects)
	loose.Spec.Template.Spec.Containers[0].SecurityContext = nil
	if err := dryRunPod(t.Context(), c, loose); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Fatalf("a pod without a security context: got %v, expected a refusal by pod security", err)
	}
}

func TestManagersAreBounded(t *testing.T) {
	for _, r := range slices.Concat(renderings, webRenderings) {
		_, objects := render(t, r)
		spec := deployment(t, objects).Spec.Template.Spec
		manager := spec.Containers[0]
		if manager.Resources.Limits.Memory().IsZero() || manager.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: the manager has no memory limit or no CPU request", r)
		}
		if manager.LivenessProbe == nil || manager.ReadinessProbe == nil {
			t.Errorf("%s: the manager has no probes", r)
		}
		for _, volume := range spec.Volumes {
			if volume.Secret == nil && volume.ConfigMap == nil && (volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil) {
				t.Errorf("%s: volume %q is no Secret, no ConfigMap and no emptyDir with a size limit", r, volume.Name)
			}
		}
	}
}

// forbidden are the verbs that nobody gets: those that make rights, and those that are other verbs in disguise.
var forbidden = []string{"*", "escalate", "bind", "impersonate", "deletecollection", "approve", "sign"}

// makingRights are what accounts, tokens, rights and certificates are made by: whoever writes them is more than the role says.
var makingRights = []string{
	"serviceaccounts", "serviceaccounts/token", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "certificatesigningrequests",
	"certificatesigningrequests/approval", "certificatesigningrequests/status", "signers",
}

// exceptions are the rules with them that one rendering has, each with the policy that limits what the manager does by it. Where agents are
// not enabled there is none.
var exceptions = map[string]map[string]string{"trellis-seed, with agents": {
	"create,delete,get,list,update,watch serviceaccounts": "manager-accounts",
	"create serviceaccounts/token":                        "manager-tokens",
	"create,delete,get,list,update,watch roles":           "manager-roles",
	"create,delete,get,update rolebindings":               "manager-bindings",
	"create,delete,get certificatesigningrequests":        "manager-requests",
	"update certificatesigningrequests/approval":          "manager-approvals",
	"approve signers kubernetes.io/kube-apiserver-client": "manager-approvals",
}}

// exceptional says whether a rule makes rights, and which policy limits it.
func exceptional(of string, rule rbacv1.PolicyRule) (makes bool, policy string) {
	writes := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return strings.Contains(reads, verb) })
	makes = slices.ContainsFunc(rule.Resources, func(one string) bool { return slices.Contains(makingRights, one) }) && len(writes) > 0
	words := []string{strings.Join(slices.Sorted(slices.Values(rule.Verbs)), ","), strings.Join(rule.Resources, ",")}
	return makes, exceptions[of][strings.Join(append(words, rule.ResourceNames...), " ")]
}

// readsMetrics is the one rule about URLs, of the role for Prometheus.
const readsMetrics = `{"verbs":["get"],"nonResourceURLs":["/metrics"]}`

func TestNoRoleGrantsTooMuch(t *testing.T) {
	granted := map[string][]*unstructured.Unstructured{}
	for _, r := range renderings {
		_, granted[r.String()] = render(t, r)
	}
	root, err := binaries.Root()
	expect.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "deploy", "seed", "rights.yaml"))
	expect.NoError(t, err)
	if granted["deploy/seed/rights.yaml"], err = Documents("rights.yaml", string(content)); err != nil {
		t.Fatal(err)
	}
	for of, objects := range granted {
		used := map[string]bool{}
		for _, rule := range rules(t, objects) {
			text, err := json.Marshal(rule)
			expect.NoError(t, err)
			makes, policy := exceptional(of, rule)
			used[policy] = true
			words := slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources)
			if slices.ContainsFunc(words, func(word string) bool { return slices.Contains(forbidden, word) }) && policy == "" {
				t.Errorf("%s: rule %s has one of %q", of, text, forbidden)
			}
			// The guard deletes the roles of its own chart that gather others.
			deletesNamed := slices.Equal(rule.Verbs, []string{"delete"}) && len(rule.ResourceNames) > 0
			if makes && policy == "" && !deletesNamed {
				t.Errorf("%s: rule %s makes rights", of, text)
			}
			if len(rule.NonResourceURLs) > 0 && string(text) != readsMetrics {
				t.Errorf("%s: rule %s grants URLs", of, text)
			}
		}
		for rule, policy := range exceptions[of] {
			if !used[policy] || !has(objects, "ValidatingAdmissionPolicyBinding", namespace+".trellis-seed."+policy) {
				t.Errorf("%s: rule %q is not there, or no policy %q limits it", of, rule, policy)
			}
		}
	}
}

func has(objects []*unstructured.Unstructured, kind, name string) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name
	})
}

// rules are those of all roles, for managers and for people.
func rules(t *testing.T, objects []*unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	var all []rbacv1.PolicyRule
	for _, object := range objects {
		switch one := []*unstructured.Unstructured{object}; object.GetKind() {
		case "Role":
			all = append(all, typed[rbacv1.Role](t, one, "Role").Rules...)
		case "ClusterRole":
			all = append(all, typed[rbacv1.ClusterRole](t, one, "ClusterRole").Rules...)
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// access is a question to the API server's authorizer.
type access struct {
	verb, group, resource, namespace, name string
	allowed                                bool
	why                                    string
}

const (
	group        = "kubermatic.k8c.io"
	registration = "admissionregistration.k8s.io"
)

var accesses = map[string][]access{
	"trellis-master": {
		{"watch", group, "addoncatalogues", "", "", true, "catalogues in the wrong namespace are told so"},
		{"patch", group, "addoncatalogues/status", namespace, "", true, "it writes status"},
		{"create", group, "addoncatalogues", namespace, "", true, "catalogues are generated from those in git"},
		{"delete", group, "addoncatalogues", namespace, "", true, "what is generated goes when the commit lacks it"},
		{"delete", group, "addoncatalogues", "default", "", false, "nothing is generated in other namespaces"},
		{"watch", group, "addonsets", "", "", true, "sets in the wrong namespace are told so"},
		{"patch", group, "addonsets", namespace, "", true, "its finalizer"},
		{"patch", group, "addonsets/status", namespace, "", true, "it writes status"},
		{"create", group, "addonsets", namespace, "", false, "copies are made with the kubeconfigs of seeds"},
		{"delete", group, "addonsets", namespace, "", false, "people delete sets"},
		{"control", group, "addonsets", namespace, "", false, "no copy is on the master"},
		{"watch", group, "seeds", namespace, "", true, "Seeds are watched"},
		{"patch", group, "seeds", namespace, "", false, "Seeds belong to KKP"},
		{"get", "", "secrets", namespace, "", true, "kubeconfigs of seeds"},
		{"get", "", "secrets", "kube-system", "", false, "nobody else's Secrets"},
		{"create", "", "secrets", namespace, "", false, "it writes Secrets on seeds only"},
		{"update", "", "secrets", namespace, "trellis-master-webhook", true, "the certificate of its webhooks"},
		{"update", "", "secrets", namespace, "kubeconfig-seed", false, "no other Secret"},
		{"patch", registration, "validatingwebhookconfigurations", "", "kubermatic.trellis-master", true, "the authority of its webhooks"},
		{"patch", registration, "validatingwebhookconfigurations", "", "kubermatic.trellis-seed", false, "nobody else's webhooks"},
		{"create", registration, "validatingwebhookconfigurations", "", "", false, "the chart brings the configuration"},
		{"patch", registration, "validatingadmissionpolicies", "", "", false, "policies hold for it too"},
		{"control", group, "addoncatalogues", namespace, "", true, "generated catalogues"},
		{"control", group, "addoninstallations", "", "", false, "none is on the master"},
		{"patch", "", "configmaps", namespace, "addon-seeds", true, "identities of seeds"},
		{"update", "", "configmaps", namespace, "other", false, "no other ConfigMap"},
		{"create", "apps", "controllerrevisions", namespace, "", true, "the last valid spec"},
		{"update", "coordination.k8s.io", "leases", namespace, "trellis-master.addons.kubermatic.k8c.io", true, "one leader"},
		{"update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler", false, "nobody else's lease"},
		{"create", "events.k8s.io", "events", namespace, "", true, "events"},
		{"patch", "events.k8s.io", "events", namespace, "", true, "an event that is told again"},
		{"create", "events.k8s.io", "events", "default", "", true, "what is in the wrong namespace is told so there"},
		{"create", "", "events", "default", "", false, "only the election of the leader writes events of the core group"},
		{"patch", group, "addoncatalogues", "default", "", false, "people's catalogues are theirs"},
		{"control", group, "addoncatalogues", "default", "", false, "nothing is generated in other namespaces"},
	},
	"trellis-seed": {
		{"create", group, "addoncatalogues", "cluster-a", "", true, "available catalogues"},
		{"patch", group, "addoninstallations/status", "cluster-a", "", true, "it writes status"},
		{"update", group, "addoninstallations/finalizers", "cluster-a", "", false, "release records block the deletion of no owner"},
		{"delete", group, "addoninstallations", "cluster-a", "", true, "core installations that left the set go"},
		{"watch", group, "addonsets", "addon-catalogue", "", true, "copies of sets"},
		{"patch", group, "addonsets", "addon-catalogue", "", true, "their finalizer"},
		{"patch", group, "addonsets/status", "addon-catalogue", "", true, "it writes status"},
		{"control", group, "addonsets", "addon-catalogue", "", true, "the finalizer of a copy"},
		{"create", group, "addonsets", "addon-catalogue", "", false, "the master makes copies"},
		{"delete", group, "addonsets", "addon-catalogue", "", false, "the master deletes copies"},
		{"watch", group, "clusters", "", "", true, "user clusters are watched"},
		{"patch", group, "clusters", "", "", true, "requests for installations are removed"},
		{"watch", group, "addons", "cluster-a", "", true, "KKP's own add-ons have to be gone first"},
		{"delete", group, "addons", "cluster-a", "", false, "Addons belong to KKP"},
		{"watch", group, "ipamallocations", "cluster-a", "", true, "KKP's data for templates"},
		{"watch", group, "kubermaticconfigurations", namespace, "", true, "KKP's data for templates"},
		{"patch", "events.k8s.io", "events", "cluster-a", "", true, "an event that is told again"},
		{"create", "", "events", "cluster-a", "", false, "only the election of the leader writes events of the core group"},
		{"delete", group, "addoncatalogues", "cluster-a", "", false, "available catalogues go with their namespace"},
		{"create", group, "addoninstallations", "cluster-a", "", true, "installations are made that a Cluster asks for"},
		{"patch", group, "clusters/status", "", "", false, "Clusters belong to KKP"},
		{"delete", "", "namespaces", "", "cluster-a", false, "cluster namespaces belong to KKP"},
		{"create", "", "secrets", "cluster-a", "", true, "release records"},
		{"patch", "", "configmaps", "kube-public", "addon-query", true, "where the query endpoint is"},
		{"patch", "", "configmaps", "kube-public", "cluster-info", false, "no other ConfigMap there"},
		{"create", "", "configmaps", "kube-public", "", false, "the chart creates it"},
		{"create", "", "pods", "cluster-a", "", false, "it runs nothing"},
		{"patch", registration, "validatingwebhookconfigurations", "", "kubermatic.trellis-seed", true, "the authority of its webhooks"},
		{"patch", registration, "validatingwebhookconfigurations", "", "other", false, "nobody else's webhooks"},
		{"control", group, "addoncatalogues", "cluster-a", "", true, "available catalogues"},
		{"control", group, "addoninstallations", "cluster-a", "", true, "finalizers of core installations"},
		{"get", "", "pods/exec", "cluster-a", "", false, "it runs nothing"},
		{"create", "authentication.k8s.io", "tokenreviews", "", "", true, "authenticates clients of the query endpoint"},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", true, "what they may list"},
		{"create", "", "serviceaccounts/token", "cluster-a", "", false, "it makes no tokens"},
		{"update", "coordination.k8s.io", "leases", namespace, "trellis-seed.addons.kubermatic.k8c.io", true, "one leader"},
	},
}

func TestManagersHaveTheRightsTheyNeedAndNoOthers(t *testing.T) {
	for _, r := range []rendering{renderings[0], renderings[2]} {
		ask(t, r, accesses[r.chart])
	}
}

func TestStandaloneRights(t *testing.T) {
	ask(t, renderings[3], []access{
		{"patch", group, "clusters", "", "", true, "the finalizer of the cluster namespace"},
		{"patch", group, "clusters/status", "", "", true, "what KKP would write"},
		{"create", "", "namespaces", "", "", true, "cluster namespaces"},
		{"delete", "", "namespaces", "", "cluster-a", true, "cluster namespaces"},
		{"delete", group, "clusters", "", "a", false, "whoever made a Cluster deletes it"},
		{"update", "coordination.k8s.io", "leases", namespace, "trellis-seed.addons.kubermatic.k8c.io-lab", true, "a worker's own lease"},
	})
}

// ask applies a rendering and asks for each access as the manager's ServiceAccount. The chart's roles are replaced as a
// whole by the next rendering's, since all have the same names.
func ask(t *testing.T, r rendering, accesses []access) {
	t.Helper()
	c := connect(t)
	_, objects := render(t, r)
	for _, object := range objects {
		apply(t, c, object)
	}
	// The authorizer follows changed roles by watches of its own; once it grants what it should, it has them all, and what
	// it denies then counts.
	granted := slices.DeleteFunc(slices.Clone(accesses), func(a access) bool { return !a.allowed })
	denied := slices.DeleteFunc(slices.Clone(accesses), func(a access) bool { return a.allowed })
	for _, access := range slices.Concat(granted, denied) {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, expect.Patience, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: access.spec(r.chart)}
			err := c.Create(ctx, review)
			return review.Status.Allowed == access.allowed, err
		})
		if err != nil {
			t.Errorf("%s: %s %s %s in %q: allowed should be %t, since %s: %v",
				r, access.verb, access.resource, access.name, access.namespace, access.allowed, access.why, err)
		}
	}
}

func (a access) spec(account string) authorizationv1.SubjectAccessReviewSpec {
	resource, subresource, _ := strings.Cut(a.resource, "/")
	return authorizationv1.SubjectAccessReviewSpec{
		User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, account),
		Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: resource, Subresource: subresource, Namespace: a.namespace, Name: a.name,
		},
	}
}
