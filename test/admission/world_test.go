package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

const older, newer = "older", "newer"

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: older, Release: binaries.Older}, fleet.ClusterOptions{Name: newer, Release: binaries.Newer})
}

// Users of the tests. Tenant may do with our kinds whatever RBAC can give, except for our own verbs; controller and the manager of
// the master have control besides, coreAuthor has manage-core.
const (
	tenant              = "tenant"
	controller          = "controller"
	coreAuthor          = "core-author"
	masterManager       = "system:serviceaccount:kubermatic:trellis-master"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
)

const (
	platform = "kubermatic"
	// place is a cluster namespace; ending is one that is being deleted and never goes.
	place, ending = "cluster-a", "cluster-ending"
	// seedCatalogues takes the merged catalogues.
	seedCatalogues = "addon-catalogue"
)

// world is one API server with the charts' policies.
type world struct {
	config *rest.Config
	scheme *runtime.Scheme
	admin  client.Client
	// follows says that the API server follows the policies, hasAgents that agents was called.
	follows, hasAgents bool
}

// prepared are the worlds by API server, each made once.
var prepared = map[string]func() (*world, error){
	older: sync.OnceValues(func() (*world, error) { return prepare(older) }),
	newer: sync.OnceValues(func() (*world, error) { return prepare(newer) }),
}

// everywhere runs a test on either API server.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, name := range []string{older, newer} {
		t.Run(name, func(t *testing.T) {
			w, err := prepared[name]()
			expect.NoError(t, err)
			if !w.follows { // once: a later release may refuse the probes in its own name
				w.awaitPolicies(t)
				w.follows = true
			}
			test(t, w)
		})
	}
}

func prepare(name string) (*world, error) {
	ctx := context.Background()
	w := &world{config: fleet.Shared().Cluster(name).Config, scheme: wiring.Scheme()}
	folders, err := fleet.CRDFolders()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(fleet.InstallCRDs(ctx, w.config, folders...), clusterapi.InstallCRDs(ctx, w.config)); err != nil {
		return nil, err
	}
	if w.admin, err = client.New(w.config, client.Options{Scheme: w.scheme}); err != nil {
		return nil, err
	}
	for _, object := range w.objects() {
		if err := w.admin.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		policies, err := charts.Policies(chart, platform)
		if err != nil {
			return nil, err
		}
		for _, policy := range policies {
			if err := w.admin.Create(ctx, policy); err != nil {
				return nil, fmt.Errorf("creating %s %q: %w", policy.GetKind(), policy.GetName(), err)
			}
		}
	}
	return w, nil
}

// objects are namespaces, and roles of the users.
func (w *world) objects() []client.Object {
	kinds := []string{
		"addoncatalogues", "addoninstallations", "addonsets", "addoncatalogues/status", "addoninstallations/status", "addonsets/status", "clusters",
	}
	all := []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedCatalogues}},
		// Without a controller-manager a deleted namespace stays as it is, terminating.
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ending}},
	}
	for user, verbs := range map[string][]string{
		tenant: all, controller: append([]string{kubermaticv1.VerbControl}, all...),
		coreAuthor: append([]string{kubermaticv1.VerbManageCore}, all...), masterManager: append([]string{kubermaticv1.VerbControl}, all...),
	} {
		rights := rbacv1.PolicyRule{APIGroups: []string{"kubermatic.k8c.io"}, Resources: kinds, Verbs: verbs}
		objects = append(objects, given.UserRights(user, rights)...)
	}
	return objects
}

// as is a client of a user.
func (w *world) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	if strings.HasPrefix(user, "system:serviceaccount:") {
		config.Impersonate.Groups = append(config.Impersonate.Groups, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	}
	made, err := client.New(config, client.Options{Scheme: w.scheme})
	expect.NoError(t, err)
	return made
}

// awaitPolicies waits until the API server follows every policy, each of which refuses its probe from then on; it follows
// them, and the users' roles, by watches of its own.
func (w *world) awaitPolicies(t *testing.T) {
	t.Helper()
	user := w.as(t, tenant)
	core := coreCatalogue("probe", platform, "")
	expect.Ensure(t, w.admin, core)
	carriedOut := set("probe", platform, "")
	carriedOut.Finalizers = []string{kubermaticv1.FinalizerCleanupSet}
	expect.Ensure(t, w.admin, carriedOut)
	for _, probe := range []func() error{
		func() error {
			return user.Create(t.Context(), catalogue("probe-role", place, kubermaticv1.RoleMerged), client.DryRunAll)
		},
		func() error {
			return user.Create(t.Context(), installation("probe-core", place, true), client.DryRunAll)
		},
		func() error {
			return w.as(t, coreAuthor).Delete(t.Context(), core, client.DryRunAll) // by the confirmation
		},
		func() error {
			return user.Create(t.Context(), coreCatalogue("probe-author", platform, ""), client.DryRunAll)
		},
		func() error {
			taking := catalogue("probe-taking", platform, "")
			taking.Annotations = map[string]string{kubermaticv1.AnnotationTakeOver: "web"}
			return user.Create(t.Context(), taking, client.DryRunAll)
		},
		func() error {
			return user.Create(t.Context(), copyOf("probe-copy", seedCatalogues), client.DryRunAll)
		},
		func() error {
			return user.Create(t.Context(), ofSet("probe-set", nil), client.DryRunAll)
		},
		func() error { return user.Create(t.Context(), many("probe-metadata", 65, 0), client.DryRunAll) },
		func() error {
			return w.as(t, controller).Delete(t.Context(), carriedOut, client.DryRunAll) // by the confirmation
		},
	} {
		expect.Eventually(t, expect.Patience, func() error {
			if err := probe(); !isDenied(err) {
				return fmt.Errorf("no policy refuses the probe yet: %v", err)
			}
			return nil
		})
	}
	expect.Eventually(t, expect.Patience, func() error {
		return w.as(t, controller).Create(t.Context(), installation("probe-core", place, true), client.DryRunAll)
	})
}

// isDenied holds for a policy's refusal, not for one of the authorizer.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'kubermatic.trellis-")
}

func catalogue(name, namespace, role string) *kubermaticv1.AddonCatalogue {
	object := given.Catalogue(namespace, name, given.Addon("web", kubermaticv1.AddonVersion{Version: "1.0.0"}))
	if role != "" {
		object.Labels = map[string]string{kubermaticv1.LabelRole: role}
	}
	return object
}

func coreCatalogue(name, namespace, role string) *kubermaticv1.AddonCatalogue {
	object := catalogue(name, namespace, role)
	object.Spec.Type = kubermaticv1.CatalogueCore
	return object
}

func installation(name, namespace string, core bool) *kubermaticv1.AddonInstallation {
	made := given.Installation(namespace, name, "web", "web")
	made.Finalizers, made.Labels = []string{"example.com/hold"}, map[string]string{kubermaticv1.LabelManagedBy: "core-addon-controller"}
	made.Spec.CoreAddon = core
	return made
}
