package charts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

const (
	reads       = "get list watch"
	writes      = "create delete patch update"
	ourEvents   = "events"
	theirEvents = "events.k8s.io/events"
	catalogues  = group + "/addoncatalogues"
	sets        = group + "/addonsets"
	installs    = group + "/addoninstallations"
)

// handedOut are the roles for people: their rights, complete, as verbs by resource.
var handedOut = []struct {
	chart, role string
	may         map[string]string
}{
	{"trellis-master", "catalogue-viewer", map[string]string{
		catalogues: reads, sets: reads, ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-master", "catalogue-admin", map[string]string{
		catalogues: reads + " " + writes, sets: reads + " " + writes, ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-master", "core-catalogue-admin", map[string]string{
		catalogues: reads + " " + writes + " manage-core", sets: reads + " " + writes + " manage-core", ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-seed", "cluster-viewer", map[string]string{
		catalogues: reads, installs: reads, ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-seed", "cluster-user", map[string]string{
		catalogues: reads, installs: reads + " " + writes, ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-seed", "addon-admin", map[string]string{
		catalogues: reads, installs: reads + " " + writes, sets: reads, ourEvents: reads, theirEvents: reads,
	}},
	{"trellis-seed", "values-writer", map[string]string{"secrets": "create delete update write-values"}},
}

// Red when a role for people has one right more or less, where it is bound or elsewhere.
func TestRolesForPeopleGrantWhatTheyAreFor(t *testing.T) {
	c := withRoles(t)
	for _, of := range handedOut {
		t.Run(of.role, func(t *testing.T) {
			user := bind(t, c, of.chart, of.role, namespace)
			expect.Eventually(t, expect.Patience, func() error {
				granted := map[string]string{}
				for resource, verbs := range rightsOf(t, user, namespace) {
					granted[resource] = strings.Join(slices.Sorted(maps.Keys(verbs)), " ")
				}
				wanted := map[string]string{}
				for resource, verbs := range of.may {
					wanted[resource] = strings.Join(slices.Sorted(slices.Values(strings.Fields(verbs))), " ")
				}
				if diff := cmp.Diff(wanted, granted); diff != "" {
					return fmt.Errorf("-want +granted:\n%s", diff)
				}
				return nil
			})
			if rights := rightsOf(t, user, "default"); len(rights) > 0 {
				t.Errorf("it grants beyond the namespace that it is bound in: %v", rights)
			}
		})
	}
}

// Red when a user with a role is refused what the role is for, or may do by it what policies keep for others.
func TestRolesForPeopleAtWork(t *testing.T) {
	c := withRoles(t)
	core := func(name string) *kubermaticv1.AddonCatalogue {
		made := custom(name)
		made.Spec.Type = kubermaticv1.CatalogueCore
		return made
	}
	coreInstall := install("theirs", "cluster-r")
	coreInstall.Spec.CoreAddon = true
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-r"}}
	expect.Create(t, c, place)
	expect.Eventually(t, expect.Patience, func() error { // the policies are followed by watches
		err := asUser(t, bind(t, c, "trellis-seed", "cluster-user", place.Name)).Create(t.Context(), coreInstall.DeepCopy(), client.DryRunAll)
		return refusal(err, "controller only")
	})
	for _, one := range []struct {
		chart, role, where string
		object             client.Object
		refused            string
	}{
		{"trellis-master", "catalogue-viewer", namespace, custom("mine"), "cannot create"},
		{"trellis-master", "catalogue-admin", namespace, custom("mine"), ""},
		{"trellis-master", "catalogue-admin", namespace, core("mine"), "manage-core"},
		{"trellis-master", "core-catalogue-admin", namespace, core("mine"), ""},
		{"trellis-master", "core-catalogue-admin", namespace, given.Secret(namespace, "mine", map[string][]byte{"a": []byte("b")}), "cannot create"},
		{"trellis-seed", "cluster-viewer", place.Name, install("mine", place.Name), "cannot create"},
		{"trellis-seed", "cluster-user", place.Name, install("mine", place.Name), ""},
		{"trellis-seed", "cluster-user", place.Name, install("mine", namespace), "cannot create"},
		{"trellis-seed", "cluster-user", place.Name, coreInstall, "controller only"},
		{"trellis-seed", "addon-admin", place.Name, install("mine", place.Name), ""},
		{"trellis-seed", "addon-admin", place.Name, coreInstall, "controller only"},
	} {
		user := asUser(t, bind(t, c, one.chart, one.role, one.where))
		expect.Eventually(t, expect.Patience, func() error {
			err := user.Create(t.Context(), one.object.DeepCopyObject().(client.Object), client.DryRunAll)
			if one.refused == "" {
				return err
			}
			if err := refusal(err, one.refused); err != nil {
				return fmt.Errorf("%s creates %T %q: %w", one.role, one.object, one.object.GetName(), err)
			}
			return nil
		})
	}
}

// refusal tells where an answer is not a refusal with these words.
func refusal(err error, words string) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("got %v, want a refusal with %q", err, words)
	}
	return nil
}

// withRoles applies what both charts have to do with rights.
func withRoles(t *testing.T) client.Client {
	t.Helper()
	c := connect(t)
	for _, r := range []rendering{renderings[0], renderings[2]} {
		crds, objects := render(t, r)
		objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
			return object.GetKind() != "ClusterRole" && !strings.HasPrefix(object.GetKind(), "ValidatingAdmissionPolicy")
		})
		for _, object := range slices.Concat(crds, objects) {
			apply(t, c, object)
		}
	}
	return platformClient(t)
}

// bind gives a user of its own a chart's role in one namespace.
func bind(t *testing.T, c client.Client, chart, role, where string) (user string) {
	t.Helper()
	user = role + "-in-" + where
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role, Namespace: where},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace + ":" + chart + ":" + role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	expect.Ensure(t, c, binding)
	return user
}

func configOf(user string) *rest.Config {
	config := rest.CopyConfig(fleet.Shared().Cluster(cluster).Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

func asUser(t *testing.T, user string) client.Client {
	t.Helper()
	made, err := client.New(configOf(user), client.Options{Scheme: platformClient(t).Scheme()})
	expect.NoError(t, err)
	return made
}

// rightsOf are verbs by resource that a user has in a namespace and a stranger has not, by the API server's own authorizer.
func rightsOf(t *testing.T, user, where string) map[string]map[string]bool {
	t.Helper()
	rights := rulesOf(t, user, where)
	for resource, verbs := range rulesOf(t, "stranger", where) {
		for verb := range verbs {
			delete(rights[resource], verb)
		}
		if len(rights[resource]) == 0 {
			delete(rights, resource)
		}
	}
	return rights
}

func rulesOf(t *testing.T, user, where string) map[string]map[string]bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: where}}
	c, err := client.New(configOf(user), client.Options{})
	expect.NoError(t, err)
	if err := c.Create(context.Background(), review); err != nil || review.Status.EvaluationError != "" {
		t.Fatalf("asking for the rights of %q: %v, %s", user, err, review.Status.EvaluationError)
	}
	rights := map[string]map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name := strings.TrimPrefix(group+"/"+resource, "/")
				if len(rule.ResourceNames) > 0 {
					name += " named " + strings.Join(rule.ResourceNames, ", ")
				}
				if rights[name] == nil {
					rights[name] = map[string]bool{}
				}
				for _, verb := range rule.Verbs {
					rights[name][verb] = true
				}
			}
		}
	}
	return rights
}

func custom(name string) *kubermaticv1.AddonCatalogue {
	return given.Catalogue(namespace, name, given.Addon(name, kubermaticv1.AddonVersion{Version: "1.0.0"}))
}

func install(name, where string) *kubermaticv1.AddonInstallation {
	return given.Installation(where, name, "hello", "hello")
}
