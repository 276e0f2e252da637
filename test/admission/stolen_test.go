package admission

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/expect"
)

// den is the platform namespace of the managers whose tokens are stolen; victim is a namespace of somebody else.
const (
	den    = "den"
	victim = "kube-system"
	host   = "cluster-stolen"
)

// attempt is something that a thief tries.
type attempt struct {
	what string
	do   func(ctx context.Context, thief client.Client) error
	// inherent says why the job needs it, for the manager of that name; for others it has to be refused.
	inherent map[string]string
	// as is who the thief wants to be.
	as string
}

const (
	seedManager   = "trellis-seed"
	masterOfSeeds = "trellis-master"
)

func both(why string) map[string]string {
	return map[string]string{seedManager: why, masterOfSeeds: why}
}
func seedOnly(why string) map[string]string   { return map[string]string{seedManager: why} }
func masterOnly(why string) map[string]string { return map[string]string{masterOfSeeds: why} }

func creating(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

// updating writes over an object that is there.
func updating(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Update(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

// merging sends a merge patch to an object that is there.
func merging(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
	}
}

// statusOf sends a merge patch to the status of an object that is there.
func statusOf(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Status().Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
}

func deleting(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Delete(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func reading(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, thief client.Client) error {
		return thief.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	}
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secretOf(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: at(namespace, name), Type: kind}
	if kind == corev1.SecretTypeServiceAccountToken {
		made.Annotations = map[string]string{corev1.ServiceAccountNameKey: "powerful"}
	}
	return made
}

// anyOf is an object of a kind that the scheme need not know, in the platform namespace.
func anyOf(version, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetNamespace(den)
	object.SetName(name)
	return object
}

// finalizerOfKKP has KKP clean up what it made for a Cluster.
const finalizerOfKKP = "kubermatic.k8c.io/cleanup-credentials-secrets"

// ofCluster is an object that a Cluster owns.
func ofCluster[T client.Object](object T) T {
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: kkpv1.GroupVersion.String(), Kind: "Cluster", Name: "stolen", UID: "9a1b", Controller: new(true),
	}})
	return object
}

func roleOf(namespace, name, role string) *kubermaticv1.AddonCatalogue {
	made := catalogue(name, namespace, role)
	made.Name = name
	return made
}

func setIn(namespace, name, role string) *kubermaticv1.AddonSet {
	return set(name, namespace, role)
}

// attempts are all that is tried, in the order of the table, by the managers of a platform namespace.
func attempts(home string) []attempt {
	token := secretOf(victim, "minted", corev1.SecretTypeServiceAccountToken)
	hidden := ofCluster(secretOf(host, "hidden", corev1.SecretTypeServiceAccountToken))
	pod := &corev1.Pod{ObjectMeta: at(home, "p"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "thief"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "thief"}},
	}
	ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "thief"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "thief.example.com", FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://thief.example.com/")},
		}},
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "thief"}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: home + "." + seedManager + ".manager-secrets"}}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}}
	configMap := func(name string) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: at(home, name)} }
	ofSomebody := &appsv1.ControllerRevision{ObjectMeta: at(home, "workload-1"), Data: runtime.RawExtension{Raw: []byte("{}")}, Revision: 1}
	everything := `{"name":"%s","clientConfig":{"url":"https://thief.example.com/"},"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}],"sideEffects":"None","admissionReviewVersions":["v1"]}`
	own := func(chart string) func(context.Context, client.Client) error {
		return merging(&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: home + "." + chart}},
			`{"webhooks":[`+fmt.Sprintf(everything, "addoncatalogues.addons.kubermatic.k8c.io")+`]}`)
	}
	crd := anyOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "thieves.example.com")
	crd.SetNamespace("")
	return append([]attempt{
		{what: "read a Secret of another namespace, such as a token", do: reading(secretOf(victim, "existing", "")), inherent: seedOnly(
			"namespaces of clusters are created and deleted, and RBAC selects Secrets neither by label nor by type")},
		{what: "read a Secret of the platform namespace, such as a seed's kubeconfig", do: reading(secretOf(home, "existing", "")), inherent: both(
			"it has kubeconfigs of seeds, credentials of sources, and the manager's own keys")},
		{what: "create a token with a Secret of type service-account-token", do: creating(token)},
		{what: "the same in a cluster namespace, as if a Cluster owned it", do: creating(hidden)},
		{what: "the same in the platform namespace, under the name of one of the manager's Secrets",
			do: creating(secretOf(home, "trellis-inputs-key", corev1.SecretTypeServiceAccountToken))},
		{what: "request a token of a ServiceAccount", do: func(ctx context.Context, thief client.Client) error {
			return thief.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: at(victim, "powerful")}, &authenticationv1.TokenRequest{})
		}},
		{what: "create a ServiceAccount", do: creating(&corev1.ServiceAccount{ObjectMeta: at(home, "thief")})},
		{what: "create a Secret in another namespace", do: creating(secretOf(victim, "planted", corev1.SecretTypeOpaque))},
		{what: "change a kubeconfig in a cluster namespace", do: merging(secretOf(host, "internal-admin-kubeconfig", ""), `{"data":{"kubeconfig":"eA=="}}`)},
		{what: "delete a kubeconfig in a cluster namespace", do: deleting(secretOf(host, "internal-admin-kubeconfig", ""))},
		{what: "change another Secret of the platform namespace", do: merging(secretOf(home, "existing", ""), `{"data":{"a":"eA=="}}`)},
		{what: "write a release record in a cluster namespace",
			do: creating(ofCluster(secretOf(host, "addon-1", revision.SecretType))), inherent: seedOnly("it stores its state in records")},
		{what: "delete a release record", do: deleting(ofCluster(secretOf(host, "addon-2", revision.SecretType))), inherent: seedOnly(
			"it deletes old records")},
		{what: "create a pod", do: creating(pod)},
		{what: "run a program in a pod", do: func(ctx context.Context, thief client.Client) error {
			return thief.SubResource("exec").Create(ctx, anyOf("v1", "Pod", "p"), anyOf("v1", "PodExecOptions", ""))
		}},
		{what: "change its own Deployment", do: merging(&appsv1.Deployment{ObjectMeta: at(home, "trellis")}, `{"spec":{"paused":true}}`)},
		{what: "create a ControllerRevision for pods of another controller", do: creating(ofSomebody)},
		{what: "delete a ControllerRevision of another controller", do: deleting(&appsv1.ControllerRevision{ObjectMeta: at(home, "existing")})},
		{what: "bind a role", do: creating(binding)},
		{what: "create a role", do: creating(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "thief"}})},
		{what: "change its own role", do: merging(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: home + ":" + seedManager}}, `{"rules":[]}`)},
		{what: "create a webhook that sees all writes", do: creating(hook)},
		{what: "create a webhook that changes all writes", do: creating(mutating)},
		{what: "make the seed's webhook see all writes", do: own(seedManager)},
		{what: "make the master's webhook see all writes", do: own(masterOfSeeds)},
		{what: "delete the policy that restricts it", do: deleting(policy)},
		{what: "create a CustomResourceDefinition", do: creating(crd)},
		{what: "create a namespace", do: creating(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "thief"}})},
		{what: "create a namespace of a Cluster, with privileged pods", do: creating(ofCluster(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "cluster-thief", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
		}}))},
		{what: "delete a namespace", do: deleting(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})},
		{what: "change the spec of a Cluster", do: merging(cluster, `{"spec":{"humanReadableName":"x"}}`)},
		{what: "change an annotation of KKP on a Cluster", do: merging(cluster, `{"metadata":{"annotations":{"kubermatic.io/x":"y"}}}`)},
		{what: "remove a finalizer of KKP from a Cluster", do: merging(cluster, `{"metadata":{"finalizers":null}}`)},
		{what: "block the deletion of a Cluster by a finalizer named like those of KKP",
			do: merging(cluster, `{"metadata":{"finalizers":["`+finalizerOfKKP+`","kubermatic.k8c.io/cleanup-never"]}}`)},
		{what: "change its own annotation on a Cluster",
			do: merging(cluster, `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/x":"y"}}}`), inherent: seedOnly(
				"it removes requests from a Cluster")},
		{what: "write a merged catalogue", do: creating(roleOf(seedCatalogues, "web", kubermaticv1.RoleMerged))},
		{what: "write a catalogue without a role", do: creating(roleOf(home, "web", ""))},
		{what: "write a Core catalogue as if it came from git", do: creating(coreCatalogue("web", home, kubermaticv1.RoleGenerated))},
		{what: "write a Custom catalogue as if it came from git",
			do: creating(roleOf(home, "web", kubermaticv1.RoleGenerated)), inherent: masterOnly("it writes the content of repositories")},
		{what: "write the available catalogue of a cluster",
			do: creating(roleOf(host, "available", kubermaticv1.RoleAvailable)), inherent: seedOnly("it lists the compatible add-ons")},
		{what: "write the available catalogue of one of several clusters",
			do: creating(roleOf(host, "available-prod", kubermaticv1.RoleAvailable)), inherent: seedOnly("it lists the compatible add-ons")},
		{what: "write a catalogue named like an available catalogue, without its role label", do: creating(roleOf(host, "available-web", ""))},
		{what: "change the spec of an authored catalogue", do: merging(roleOf(home, "existing", ""), `{"spec":{"priority":7}}`)},
		{what: "make an authored catalogue take over an add-on",
			do: merging(roleOf(home, "existing", ""), `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/take-over":"web"}}}`)},
		{what: "create an installation, also a core one", do: creating(installation("thief", host, true)), inherent: seedOnly(
			"it creates core add-ons; the kubeconfigs that it reads allow the same")},
		{what: "write an AddonSet", do: creating(setIn(home, "planted", ""))},
		{what: "change the spec of an AddonSet", do: merging(setIn(home, "existing", ""), `{"spec":{"priority":7}}`)},
		{what: "approve a wave of an AddonSet", do: merging(setIn(home, "existing", ""), `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/approve":"0a/canary"}}}`)},
		{what: "delete an AddonSet", do: deleting(setIn(home, "existing", ""))},
		{what: "remove the finalizer of an AddonSet",
			do: merging(setIn(home, "existing", ""), `{"metadata":{"finalizers":["kubermatic.k8c.io/cleanup-addon-set"]}}`), inherent: masterOnly(
				"its finalizer keeps sets until their installations are deleted")},
		{what: "write a copy of an AddonSet", do: creating(setIn(seedCatalogues, "planted", kubermaticv1.RoleCopy))},
		{what: "change the spec of a copy", do: merging(setIn(seedCatalogues, "existing", kubermaticv1.RoleCopy), `{"spec":{"priority":7}}`)},
		{what: "let a copy of an AddonSet begin its next group of clusters", do: merging(setIn(seedCatalogues, "existing", kubermaticv1.RoleCopy), `{"metadata":{"annotations":{"addons.kubermatic.k8c.io/gate":"0a/9"}}}`)},
		{what: "delete a copy", do: deleting(setIn(seedCatalogues, "existing", kubermaticv1.RoleCopy))},
		{what: "write the status of a copy",
			do: statusOf(setIn(seedCatalogues, "existing", kubermaticv1.RoleCopy), `{"status":{"revision":"0a"}}`), inherent: seedOnly(
				"it reports the progress of its clusters")},
		{what: "create a list of core add-ons", do: creating(configMap("custom-core-addons"))},
		{what: "write the identity of a Cluster's user cluster", do: creating(configMap("addon-cluster-stolen")), inherent: seedOnly(
			"it records identities; the kubeconfigs that it reads allow the same")},
		{what: "create the record of a user cluster's copies of the pull Secret",
			do: creating(configMap("addon-pull-stolen")), inherent: seedOnly("it records copies; it writes them with kubeconfigs that it reads")},
		{what: "change the record of copies", do: updating(configMap("addon-pull-existing")), inherent: seedOnly(
			"it creates and deletes copies")},
		{what: "delete the record of copies", do: deleting(configMap("addon-pull-existing")), inherent: seedOnly(
			"it deletes the record with the last copy")},
		{what: "write a seed's results of source checks", do: creating(configMap("addon-source-checks")), inherent: seedOnly(
			"it reports these results; the master truncates and cleans errors")},
		{what: "change another ConfigMap of namespace kube-public",
			do: merging(&corev1.ConfigMap{ObjectMeta: at(metav1.NamespacePublic, "cluster-info")}, `{"data":{"a":"b"}}`)},
		{what: "create a record of copies in another namespace", do: creating(&corev1.ConfigMap{ObjectMeta: at(host, "addon-pull-stolen")})},
		{what: "have another Secret copied to user clusters, by its label", do: merging(secretOf(home, "existing", ""),
			`{"metadata":{"labels":{"addons.kubermatic.k8c.io/use":"pull"}}}`)},
		{what: "change another ConfigMap", do: updating(configMap("existing"))},
		{what: "write another ConfigMap", do: creating(configMap("planted"))},
		{what: "create a Lease of another client", do: creating(&coordinationv1.Lease{ObjectMeta: at(home, "thief")})},
		{what: "write events", do: creating(&corev1.Event{ObjectMeta: at(home, "e"), InvolvedObject: corev1.ObjectReference{Namespace: home, Name: "x", Kind: "Pod"}}), inherent: both(
			"it reports its actions; events prove nothing")},
		{what: "impersonate another user", as: "system:admin", do: creating(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})},
		{what: "review a token", do: creating(review), inherent: both(
			"it authenticates requests for metrics and for a cluster's add-ons; the thief needs the reviewed token first")},
	}, attemptsAtPools()...)
}

const allowed, byPolicy = "allowed", "refused by policy"

// outcome says what became of an attempt.
func outcome(err error) string {
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return allowed
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"):
		return byPolicy
	case apierrors.IsForbidden(err):
		return "refused"
	}
	return "failed: " + err.Error()
}

// bearer is a client with a token of a ServiceAccount.
func (w *world) bearer(t *testing.T, of metav1.ObjectMeta, as string) client.Client {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: of}
	token := expect.Token(t, w.admin, account)
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = token
	config.Impersonate.UserName = as
	made, err := client.New(config, client.Options{Scheme: w.admin.Scheme(), Mapper: w.admin.RESTMapper()})
	expect.NoError(t, err)
	return made
}

// furnish makes what the attempts are about, and both charts whole, in namespaces of their own.
func (w *world) furnish(t *testing.T) {
	t.Helper()
	w.furnishHome(t, den, nil)
	w.install(t, masterOfSeeds, den, nil)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: host}}, secretOf(victim, "existing", ""), secretOf(host, "internal-admin-kubeconfig", ""),
		ofCluster(secretOf(host, "addon-2", revision.SecretType)), &corev1.ServiceAccount{ObjectMeta: at(victim, "powerful")},
		setIn(seedCatalogues, "existing", kubermaticv1.RoleCopy), &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "stolen", Finalizers: []string{finalizerOfKKP}}}, pooled(),
	} {
		w.put(t, object)
	}
	for _, manager := range []string{seedManager, masterOfSeeds} {
		w.awaitHeld(t, at(den, manager))
	}
}

// furnishHome makes a platform namespace with the seed's chart, and with what the attempts are about that is there.
func (w *world) furnishHome(t *testing.T, home string, agents map[string]any) {
	t.Helper()
	w.put(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})
	values := map[string]any{"standalone": map[string]any{"enabled": true}, "clusterAPI": map[string]any{"kinds": []any{"kkp", "cluster-api"}}}
	maps.Copy(values, agents)
	w.install(t, seedManager, home, values)
	for _, object := range []client.Object{
		secretOf(home, "existing", ""), roleOf(home, "existing", ""), &corev1.ConfigMap{ObjectMeta: at(home, "existing")},
		&corev1.ConfigMap{ObjectMeta: at(home, "addon-pull-existing")}, setIn(home, "existing", ""),
		&appsv1.ControllerRevision{ObjectMeta: at(home, "existing"), Data: runtime.RawExtension{Raw: []byte("{}")}, Revision: 1},
	} {
		w.put(t, object)
	}
}

// install makes all that a chart has.
func (w *world) install(t *testing.T, chart, home string, values map[string]any) {
	t.Helper()
	_, rendered, err := charts.Render(chart, home, values)
	expect.NoError(t, err)
	for _, object := range rendered {
		w.put(t, object)
	}
}

// awaitHeld waits until the policies of a manager are followed: each is when it refuses.
func (w *world) awaitHeld(t *testing.T, manager metav1.ObjectMeta) {
	t.Helper()
	probe := &coordinationv1.Lease{ObjectMeta: at(manager.Namespace, "probe")}
	expect.Eventually(t, expect.Patience, func() error {
		if got := outcome(w.bearer(t, manager, "").Create(t.Context(), probe.DeepCopy(), client.DryRunAll)); got != byPolicy {
			return fmt.Errorf("%s: a lease is %s", manager.Name, got)
		}
		return nil
	})
}

// V58, SC02: What a stolen token of either manager can do on its cluster, by trying. The table is
// that of SECURITY.md; with -update it is written there. What is not part of the manager's job has
// to be refused, whatever the table says. Red without templates/manager-policies.yaml: tokens are
// minted by a Secret, catalogues and Clusters changed, webhooks turned on everybody.
func TestStolenTokensOfManagers(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.furnish(t)
		var table strings.Builder
		table.WriteString("| a thief tries to | seed manager | master manager | why it is allowed |\n|---|---|---|---|\n")
		for _, attempt := range attempts(den) {
			w.row(t, &table, column{attempt, seedManager, at(den, seedManager)}, column{attempt, masterOfSeeds, at(den, masterOfSeeds)})
		}
		expectTable(t, ofManagers, table.String())
	})
}

// column is one try of a row: an attempt of one manager, and under which name it says what is part of the job.
type column struct {
	attempt
	name    string
	manager metav1.ObjectMeta
}

// row tries the same with each of several managers, and writes what came of it.
func (w *world) row(t *testing.T, table *strings.Builder, columns ...column) {
	t.Helper()
	cells, reasons := []string{columns[0].what}, []string{}
	for _, one := range columns {
		why, isInherent := one.inherent[one.name]
		got := w.try(t, one.attempt, one.manager, isInherent)
		if isInherent != (got == allowed) || strings.HasPrefix(got, "failed") {
			t.Errorf("%s, to %s: %s", one.name, one.what, got)
		}
		if cells = append(cells, got); isInherent && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	fmt.Fprintf(table, "| %s | %s |\n", strings.Join(cells, " | "), strings.Join(reasons, "; "))
}

// try gives the outcome of an attempt with a manager's token and nothing else. A role or policy that was made a moment ago may not be followed yet.
func (w *world) try(t *testing.T, attempt attempt, manager metav1.ObjectMeta, isInherent bool) string {
	t.Helper()
	thief := w.bearer(t, manager, attempt.as)
	var got string
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, expect.Patience, true, func(ctx context.Context) (bool, error) {
		got = outcome(attempt.do(ctx, thief))
		return isInherent == (got == allowed), nil
	})
	return got
}

var update = flag.Bool("update", false, "write the table of SECURITY.md")

// Each table of SECURITY.md is between two lines; the first says which it is.
const (
	ofManagers = "<!-- What follows is written by test/admission -update. -->\n"
	ofAgents   = "<!-- What follows, with agents, is written by test/admission -update. -->\n"
	tableEnds  = "<!-- What comes before is written by test/admission. -->"
)

// expectTable holds a table against that of SECURITY.md.
func expectTable(t *testing.T, tableBegins, table string) {
	t.Helper()
	root, err := binaries.Root()
	expect.NoError(t, err)
	path := filepath.Join(root, "SECURITY.md")
	content, err := os.ReadFile(path)
	expect.NoError(t, err)
	before, rest, begins := strings.Cut(string(content), tableBegins)
	have, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatal("SECURITY.md has no place for the table")
	}
	if *update {
		expect.NoError(t, os.WriteFile(path, []byte(before+tableBegins+table+tableEnds+after), 0o644))
		return
	}
	if diff := cmp.Diff(have, table); diff != "" {
		t.Errorf("SECURITY.md has another table: look at what changed, and run the test with -update (-have +want):\n%s", diff)
	}
}
