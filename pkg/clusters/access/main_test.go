package access

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// releases of the API servers; what a test is called by is the cluster's name.
var releases = []string{"older", "newer"}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	fleet.Main(m,
		fleet.ClusterOptions{Name: "older", Release: binaries.Older, Certificates: true},
		fleet.ClusterOptions{Name: "newer", Release: binaries.Newer, Certificates: true},
	)
}

// remembers is how long API servers remember tokens, with a margin.
const remembers = 20 * time.Second

// seed is a cluster namespace on a real API server, with a Keeper whose calls are counted.
type seed struct {
	t *testing.T
	// test is what ClusterRoles of the test are labelled with.
	test   string
	config *rest.Config
	admin  client.Client
	held   cache.Cache
	keeper *Keeper
	holder Holder
	memory *Memory
	now    time.Time
	hub    Hub
	*counts
}

// counts are calls of Keepers.
type counts struct {
	mutex sync.Mutex
	calls []string
	// fails is asked for an error before a call (isDone false) and after it.
	fails func(call string, isDone bool) error
}

// newSeed has a namespace and a Cluster of that name. What agents may be given is listed for the test alone: group is its own.
func newSeed(t *testing.T, release, name string) *seed {
	t.Helper()
	return newSeeds(t, release, name, target.Ref{Kind: target.KindKKP, Namespace: "cluster-" + name, Name: name})[0]
}

// newSeeds are several Clusters that one manager serves, with one installation each. Calls of all are counted together.
func newSeeds(t *testing.T, release, test string, of ...target.Ref) (all []*seed) {
	t.Helper()
	cluster := fleet.Shared().Cluster(release)
	first := &seed{t: t, test: test, config: cluster.Config, now: time.Now(), counts: &counts{}}
	first.hub = Hub{Server: cluster.URL(), CA: fleet.Shared().Authority().PEM}
	namespaces := map[string]cache.Config{}
	for _, one := range of {
		if _, isThere := namespaces[one.Namespace]; !isThere {
			first.admin = fleet.InNamespace(t, release, one.Namespace)
			namespaces[one.Namespace] = cache.Config{}
		}
	}
	first.startCache(namespaces)
	first.keeper = first.another(Options{})
	for _, one := range of {
		s := *first
		s.memory = &Memory{}
		s.holder = Holder{Installation: "agent", Addon: "policies", Cluster: one}
		if one.Kind == target.KindClusterAPI {
			s.holder.Installation = one.Name + ".agent"
		}
		s.newCluster()
		s.keeper = s.another(Options{})
		all = append(all, &s)
	}
	return all
}

// stubOf is an object in the place of a Cluster: any can own others. Those of two kinds may have one name.
func stubOf(of target.Ref) (object client.Object, apiVersion, kind string) {
	about := metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}
	if of.Kind == target.KindClusterAPI {
		return &coordinationv1.Lease{ObjectMeta: about}, "coordination.k8s.io/v1", "Lease"
	}
	return &corev1.ConfigMap{ObjectMeta: about}, "v1", "ConfigMap"
}

// newCluster makes the Cluster, in the place of one that was there.
func (s *seed) newCluster() {
	s.t.Helper()
	object, apiVersion, kind := stubOf(s.holder.Cluster)
	s.must(client.IgnoreNotFound(s.admin.Delete(s.t.Context(), object)))
	object.SetResourceVersion("")
	object.SetUID("")
	s.must(s.admin.Create(s.t.Context(), object))
	s.holder.Cluster.UID = object.GetUID()
	s.holder.ClusterOwner = metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: object.GetName(), UID: object.GetUID()}
	s.holder.Owner = ownership.Owner{ClusterUID: object.GetUID(), Installation: s.holder.Installation}
}

// list has agents be given rules, by a ClusterRole of the test.
func (s *seed) list(label string, rules ...rbacv1.PolicyRule) {
	s.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "agents-" + label + "-" + s.test, Labels: map[string]string{v1.LabelAgents: label, "test": s.test},
	}, Rules: rules}
	err := s.admin.Create(s.t.Context(), role)
	if apierrors.IsAlreadyExists(err) {
		err = s.admin.Update(s.t.Context(), role)
	}
	s.must(err)
	s.t.Cleanup(func() {
		if err := s.admin.Delete(context.Background(), role); client.IgnoreNotFound(err) != nil {
			s.t.Error(err)
		}
	})
	expect.Eventually(s.t, expect.Patience, func() error {
		found := &rbacv1.ClusterRole{}
		if err := s.held.Get(s.t.Context(), client.ObjectKeyFromObject(role), found); err != nil {
			return err
		}
		if found.ResourceVersion != role.ResourceVersion {
			return fmt.Errorf("held at %s, not %s", found.ResourceVersion, role.ResourceVersion)
		}
		return nil
	})
}

// startCache starts what the managers hold, with ClusterRoles of the test only.
func (s *seed) startCache(namespaces map[string]cache.Config) {
	s.t.Helper()
	ours, err := labels.NewRequirement(v1.LabelAccess, selection.Exists, nil)
	s.must(err)
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	s.held, err = cache.New(s.config, cache.Options{
		Scheme: s.admin.Scheme(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ServiceAccount{}: labelled, &rbacv1.Role{}: labelled, &rbacv1.RoleBinding{}: labelled, secretMeta(): labelled,
			&rbacv1.ClusterRole{}: {Label: labels.SelectorFromSet(labels.Set{"test": s.test})},
		},
		DefaultNamespaces: namespaces,
	})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.held.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	if !s.held.WaitForCacheSync(s.t.Context()) {
		s.t.Fatal("the cache does not sync")
	}
}

// another is a Keeper on the same seed.
func (s *seed) another(options Options) *Keeper {
	s.t.Helper()
	if options.Hub == nil {
		options.Hub = func() (Hub, error) { return s.hub, nil }
	}
	counted := s.counted(s.config)
	return NewKeeper(counted, counted, s.held, options)
}

// counted is a client whose calls are noted, and may be made to fail.
func (s *seed) counted(config *rest.Config) client.Client {
	s.t.Helper()
	plain, err := client.NewWithWatch(config, client.Options{Scheme: s.admin.Scheme()})
	s.must(err)
	note := func(verb string, object client.Object, call func() error) error {
		kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1."), "*")
		if verb == "approve" || verb == "token" {
			kind = ""
		}
		said := strings.TrimSpace(verb + " " + kind)
		s.mutex.Lock()
		s.calls = append(s.calls, said)
		fails := s.fails
		s.mutex.Unlock()
		if fails == nil {
			return call()
		}
		if err := fails(said, false); err != nil {
			return err
		}
		if err := call(); err != nil {
			return err
		}
		return fails(said, true)
	}
	return interceptor.NewClient(plain, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return note("get", object, func() error { return c.Get(ctx, key, object, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return note("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return note("update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return note("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, object, body client.Object, options ...client.SubResourceCreateOption) error {
			return note(sub, object, func() error { return c.SubResource(sub).Create(ctx, object, body, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return note("approve", object, func() error { return c.SubResource("approval").Update(ctx, object, options...) })
		},
	})
}

// made are the calls since the last time it was asked.
func (s *seed) made() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func writes(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return strings.HasPrefix(call, "get") })
}

func (s *seed) must(err error) {
	s.t.Helper()
	expect.NoError(s.t, err)
}

// keep is one pass.
func (s *seed) keep(asked ...v1.Access) []Status {
	s.t.Helper()
	statuses, err := s.keeper.Keep(s.t.Context(), s.holder, asked, s.memory, s.now)
	s.must(err)
	return statuses
}

// one is one pass over one credential.
func (s *seed) one(asked v1.Access) Status {
	s.t.Helper()
	return s.keep(asked)[0]
}

// good is one pass that ends well.
func (s *seed) good(asked v1.Access) Status {
	s.t.Helper()
	status := s.one(asked)
	if status.Problem != nil || !status.Usable {
		s.t.Fatalf("%+v, problem %+v", status, status.Problem)
	}
	return status
}

// refused is one pass that ends with a problem of that reason.
func (s *seed) refused(asked v1.Access, reason string) Status {
	s.t.Helper()
	status := s.one(asked)
	if status.Problem == nil || status.Problem.Reason != reason {
		s.t.Fatalf("%+v, problem %+v, not %s", status, status.Problem, reason)
	}
	return status
}

// becomes keeps until it ends well, with the clock of the machine.
func (s *seed) becomes(asked v1.Access) Status {
	s.t.Helper()
	var status Status
	expect.Eventually(s.t, expect.Patience, func() error {
		s.now = s.now.Add(time.Second)
		status = s.one(asked)
		if status.Problem != nil {
			return fmt.Errorf("%s: %s", status.Problem.Reason, status.Problem.Message)
		}
		return nil
	})
	return status
}

// settled waits until the cache has what the API server has.
func (s *seed) settled() {
	s.t.Helper()
	expect.Eventually(s.t, expect.Patience, func() error {
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "Secret"} {
			if live, held := s.versions(s.admin, kind), s.versions(s.held, kind); !slices.Equal(live, held) {
				return fmt.Errorf("of kind %s it has %q, held are %q", kind, live, held)
			}
		}
		return nil
	})
}

// versions of what is labelled, of a kind.
func (s *seed) versions(reader client.Reader, kind string) (found []string) {
	s.t.Helper()
	var list client.ObjectList
	switch kind {
	case "ServiceAccount":
		list = &corev1.ServiceAccountList{}
	case "Role":
		list = &rbacv1.RoleList{}
	case "RoleBinding":
		list = &rbacv1.RoleBindingList{}
	default:
		list = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	}
	s.must(reader.List(s.t.Context(), list, client.InNamespace(s.holder.Cluster.Namespace), client.HasLabels{v1.LabelAccess}))
	add := func(one client.Object) { found = append(found, one.GetName()+"@"+one.GetResourceVersion()) }
	switch list := list.(type) {
	case *corev1.ServiceAccountList:
		for at := range list.Items {
			add(&list.Items[at])
		}
	case *rbacv1.RoleList:
		for at := range list.Items {
			add(&list.Items[at])
		}
	case *rbacv1.RoleBindingList:
		for at := range list.Items {
			add(&list.Items[at])
		}
	case *metav1.PartialObjectMetadataList:
		for at := range list.Items {
			add(&list.Items[at])
		}
	}
	slices.Sort(found)
	return found
}

// left are all labelled objects.
func (s *seed) left() (found []string) {
	s.t.Helper()
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "Secret"} {
		found = append(found, s.versions(s.admin, kind)...)
	}
	return found
}

func (s *seed) get(name string, object client.Object) error {
	return s.admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.holder.Cluster.Namespace, Name: name}, object)
}

// stored is the Secret on the seed.
func (s *seed) stored(name string) *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.must(s.get("addon-access-"+s.holder.Owner.ID()+"-"+name, secret))
	return secret
}

// agent is who has what Content gives out, in files as in a Pod.
type agent struct {
	t         *testing.T
	client    client.Client
	namespace string
}

// mounted is the agent of a credential. It uses the kubeconfig as it is.
func (s *seed) mounted(access v1.Access) agent {
	s.t.Helper()
	content, digest, err := s.keeper.Content(s.t.Context(), s.holder, access)
	s.must(err)
	if len(content) == 0 || digest == "" {
		s.t.Fatalf("nothing is given out (%d keys, digest %q)", len(content), digest)
	}
	folder := s.t.TempDir()
	for key, part := range content {
		s.must(os.WriteFile(filepath.Join(folder, key), part, 0o600))
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, KeyKubeconfig))
	s.must(err)
	made, err := client.New(config, client.Options{Scheme: s.admin.Scheme()})
	s.must(err)
	return agent{t: s.t, client: made, namespace: s.holder.Cluster.Namespace}
}

// may asks the API server what the agent may do, as the agent.
func (a agent) may(verb, group, resource, namespace, name string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name},
	}}
	err := a.client.Create(a.t.Context(), review)
	return review.Status.Allowed, err
}

// works fails the test unless the agent is known, and may list policies.
func (a agent) works() {
	a.t.Helper()
	expect.Eventually(a.t, expect.Patience, func() error {
		if may, err := a.may("list", group, "policies", a.namespace, ""); err != nil || !may {
			return fmt.Errorf("it may %t: %w", may, err)
		}
		return nil
	})
}

// ends waits until the agent is known no more, or may do nothing.
func (a agent) ends(within time.Duration, isUnknown bool) {
	a.t.Helper()
	expect.Eventually(a.t, within, func() error {
		may, err := a.may("list", group, "policies", a.namespace, "")
		switch {
		case apierrors.IsUnauthorized(err), err == nil && !may && !isUnknown:
			return nil
		}
		return fmt.Errorf("it may %t, %w", may, err)
	})
}

// group of what the agents of tests may have.
const group = "policy.example.com"

func ruleOf(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// hubAccess is an access with rights on policies.
func hubAccess(name string) v1.Access {
	return v1.Access{Name: name, Rules: []v1.AccessRule{{APIGroups: []string{group}, Resources: []string{"policies"}, Verbs: []string{"get", "list"}}}}
}

func certificateAccess(name string) v1.Access {
	access := hubAccess(name)
	access.Type = v1.AccessByCertificate
	return access
}

// request is the one that is there for the test's installation.
func (s *seed) request(name string) *certificatesv1.CertificateSigningRequest {
	s.t.Helper()
	found := &certificatesv1.CertificateSigningRequest{}
	s.must(s.admin.Get(s.t.Context(), client.ObjectKey{Name: name}, found))
	return found
}

// decide puts a condition on a request.
func (s *seed) decide(name string, kind certificatesv1.RequestConditionType, message string) {
	s.t.Helper()
	found := s.request(name)
	found.Status.Conditions = append(found.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: "Test", Message: message,
	})
	s.must(s.admin.SubResource("approval").Update(s.t.Context(), found))
}

func onEach(t *testing.T, test func(t *testing.T, release string)) {
	t.Helper()
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			test(t, release)
		})
	}
}

// killAt has the process end before or after its write of that number, as far as the seed sees: no call succeeds afterwards. It gives what
// tells whether that came.
func (s *seed) killAt(number int, after bool, killed error) (isKilled func() bool) {
	count, isDead := 0, false
	s.fails = func(call string, isDone bool) error {
		if isDead {
			return killed
		}
		isWrite := !strings.HasPrefix(call, "get")
		if isWrite && !isDone {
			count++
		}
		if isDead = isWrite && count == number && isDone == after; isDead {
			return killed
		}
		return nil
	}
	return func() bool { return isDead }
}

// installation whose credentials they are.
func (s *seed) installation() client.ObjectKey {
	return client.ObjectKey{Namespace: s.holder.Cluster.Namespace, Name: s.holder.Installation}
}
