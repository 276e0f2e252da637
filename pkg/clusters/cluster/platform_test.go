package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

var backupTarget = schema.GroupKind{Group: "storage.example.com", Kind: "BackupTarget"}

// changes are those that subscribers received.
type changes struct {
	mutex sync.Mutex
	all   []Change
}

func (c *changes) record(change Change) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.all = append(c.all, change)
}

func (c *changes) expect(want Change) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if slices.Contains(c.all, want) {
		return nil
	}
	return errors.New("not told: " + cmp.Diff(want, c.all))
}

func (c *changes) count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.all)
}

// startPlatform runs a Platform with its own cache until the test ends.
func startPlatform(t *testing.T, config *rest.Config, notified *changes) *Platform {
	t.Helper()
	scheme := testScheme(t)
	httpClient, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	expect.NoError(t, err)
	objects, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, HTTPClient: httpClient})
	expect.NoError(t, err)
	platform := NewPlatform(objects, directClient(t, config), mapper, "platform", Extras{KKP: true, Providers: []schema.GroupKind{backupTarget}})
	platform.kinds.interval = 50 * time.Millisecond
	platform.Subscribe(notified.record)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Start(ctx) })
	running.Go(func() { _ = platform.Start(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return platform
}

// TestPlatformUsesKindsAsTheyCome fails when a kind that the seed lacks is an error or blocks, when it is not used
// once it is served, or when a change that nothing depends on is reported.
func TestPlatformUsesKindsAsTheyCome(t *testing.T) {
	config := fleet.ForTest(t, fleet.ClusterOptions{Name: "bare"}).Cluster("bare").Config
	seed := directClient(t, config)
	for _, name := range []string{"platform", "cluster-a"} {
		expect.Create(t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	notified := &changes{}
	platform := startPlatform(t, config, notified)
	kkp := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	kkp.Spec.Cloud.Datacenter, kkp.Status.NamespaceName = "dc-1", "cluster-a"

	facts, err := platform.facts(t.Context(), kkp)
	want := templatedata.Options{IPAMAllocations: map[string]templatedata.IPAMAllocation{}}
	if diff := cmp.Diff(want, facts); err != nil || diff != "" {
		t.Fatalf("without KKP: %v (-want +got):\n%s", err, diff)
	}
	key := types.NamespacedName{Namespace: "cluster-a", Name: "default"}
	expectProvider(t, platform, backupTarget, key, "is of a kind that this seed does not serve")
	expectProvider(t, platform, schema.GroupKind{Kind: "Secret"}, key, "is of a kind that this seed does not allow: see its --provider-kinds")

	folders := append(fleet.CRDs(t), "testdata/kkp")
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, folders...))
	made := &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "north"}}
	made.Spec.Datacenters = map[string]kkpv1.Datacenter{"dc-1": {}}
	allocation := &kkpv1.IPAMAllocation{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-a", Name: "lb"}}
	allocation.Spec = kkpv1.IPAMAllocationSpec{Type: "range", Addresses: []string{"192.0.2.1"}}
	configuration := &kkpv1.KubermaticConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "kkp"}}
	configuration.Spec.UserCluster.OverwriteRegistry = "registry.example.com"
	backups := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"secretRef": map[string]any{"name": "found"}}}}
	backups.SetGroupVersionKind(backupTarget.WithVersion("v1"))
	backups.SetNamespace("cluster-a")
	backups.SetName("default")
	for _, object := range []client.Object{made, allocation, configuration, backups} {
		expect.Create(t, seed, object)
	}
	group := kkpv1.GroupVersion.Group
	for _, change := range []Change{
		{Kind: schema.GroupKind{Group: group, Kind: "Seed"}, Name: "north"},
		{Kind: schema.GroupKind{Group: group, Kind: "IPAMAllocation"}, Cluster: target.Ref{Kind: target.KindKKP, Namespace: "cluster-a"}, Name: "lb"},
		{Kind: schema.GroupKind{Group: group, Kind: "KubermaticConfiguration"}, Name: "kkp"},
		{Kind: backupTarget, Cluster: target.Ref{Namespace: "cluster-a"}, Name: "default"},
	} {
		expect.Eventually(t, expect.Patience, func() error { return notified.expect(change) })
	}
	want = templatedata.Options{
		SeedName: "north", OverwriteRegistry: "registry.example.com",
		IPAMAllocations: map[string]templatedata.IPAMAllocation{"lb": {Type: "range", Addresses: []string{"192.0.2.1"}}},
	}
	if facts, err = platform.facts(t.Context(), kkp); err != nil || cmp.Diff(want, facts) != "" {
		t.Errorf("with KKP: %v (-want +got):\n%s", err, cmp.Diff(want, facts))
	}
	if object, err := platform.ProviderObject(t.Context(), backupTarget, key); err != nil || object["status"] == nil {
		t.Errorf("the provider's object is %v, %v", object, err)
	}
	expectProvider(t, platform, backupTarget, types.NamespacedName{Namespace: "cluster-a", Name: "none"}, "does not exist in this namespace")

	before := notified.count()
	made.Labels = map[string]string{"nobody": "asks"}
	expect.Update(t, seed, made)
	configuration.Spec.UserCluster.OverwriteRegistry = "another.example.com"
	expect.Update(t, seed, configuration)
	expect.Eventually(t, expect.Patience, func() error {
		if facts, err := platform.facts(t.Context(), kkp); err != nil || facts.OverwriteRegistry != "another.example.com" {
			return errors.New("the configuration is the old one")
		}
		return nil
	})
	expect.Eventually(t, expect.Patience, func() error {
		if got := notified.count(); got != before+1 {
			return errors.New("the change is not told, or a label of the Seed is")
		}
		return nil
	})
	second := &kkpv1.KubermaticConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "second"}}
	expect.Create(t, seed, second)
	expect.Eventually(t, expect.Patience, func() error {
		_, err := platform.facts(t.Context(), kkp)
		if several := (&SeveralConfigurationsError{}); !errors.As(err, &several) {
			return errors.New("two configurations are taken")
		}
		return nil
	})
}

func expectProvider(t *testing.T, platform *Platform, kind schema.GroupKind, key types.NamespacedName, problem string) {
	t.Helper()
	_, err := platform.ProviderObject(t.Context(), kind, key)
	var refused *target.ProviderError
	if !errors.As(err, &refused) || refused.Problem != problem {
		t.Errorf("%s %q: got %v, want ProviderError that it %s", kind, key.Name, err, problem)
	}
}

// TestClusterSecretsAreReadSeldomAndForTheirReference (AC10): Secrets that a Cluster names are read rarely, and never
// those of an earlier reference. The test fails when Secrets are read at every reconciliation, kept too long, or kept
// after a change of the reference.
func TestClusterSecretsAreReadSeldomAndForTheirReference(t *testing.T) {
	p := newPlace(t, "secrets")
	p.kkp.Spec.Cloud.Hetzner = &kkpv1.TokenCloudSpec{CredentialsReference: &kkpv1.CredentialsReference{
		Namespace: p.kkp.Status.NamespaceName, Name: "credential-hetzner",
	}}
	secrets := NewSecrets(p.seed, "kubermatic")
	clock := clocktesting.NewFakePassiveClock(time.Now())
	secrets.cache = lru.New[target.Ref, cachedSecrets](0, clock.Now)
	of := func() (templatedata.Secrets, error) { return secrets.of(t.Context(), p.kkp) }
	if _, err := of(); !errors.As(err, new(*NoKubeconfigError)) {
		t.Fatalf("got %v, want NoKubeconfigError", err)
	}
	p.keep(KubeconfigSecrets()[0], []byte("kubeconfig"))
	var missing *MissingSecretError
	if _, err := of(); !errors.As(err, &missing) || missing.Secret.Name != "credential-hetzner" {
		t.Fatalf("got %v, want MissingSecretError", err)
	}
	credential := given.Secret(p.kkp.Status.NamespaceName, "credential-hetzner", map[string][]byte{"token": []byte("one")})
	expect.Create(t, p.seed, credential)
	expectToken := func(why, token string) {
		t.Helper()
		got, err := of()
		if err != nil || got.Kubeconfig != "kubeconfig" || string(got.Credentials["token"]) != token {
			t.Errorf("%s: got token %q, %v, want %q", why, got.Credentials["token"], err, token)
		}
	}
	expectToken("read", "one")
	credential.Data["token"] = []byte("two")
	expect.Update(t, p.seed, credential)
	expectToken("kept for a moment", "one")
	clock.SetTime(clock.Now().Add(secretsTTL))
	expectToken("read again", "two")
	p.kkp.Spec.Cloud.Hetzner.CredentialsReference.Name = "another"
	if _, err := of(); !errors.As(err, &missing) {
		t.Errorf("another reference: got %v, want MissingSecretError", err)
	}
}

// TestProviderCredentialsAreReadInTwoNamespacesOnly (L2): A Cluster names a Secret of another namespace, which its
// writer may not read. The test fails when its keys are read.
func TestProviderCredentialsAreReadInTwoNamespacesOnly(t *testing.T) {
	p := newPlace(t, "foreign")
	p.keep(KubeconfigSecrets()[0], []byte("kubeconfig"))
	secrets := NewSecrets(p.seed, p.kkp.Status.NamespaceName+"-platform")
	for _, test := range []struct {
		namespace string
		isRead    bool
	}{{p.kkp.Status.NamespaceName, true}, {secrets.platform, true}, {p.kkp.Status.NamespaceName + "-other", false}} {
		if test.namespace != p.kkp.Status.NamespaceName {
			expect.Create(t, p.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: test.namespace}})
		}
		credential := given.Secret(test.namespace, "credential", map[string][]byte{"token": []byte("S3CRET")})
		expect.Create(t, p.seed, credential)
		p.kkp.Spec.Cloud.Hetzner = &kkpv1.TokenCloudSpec{CredentialsReference: &kkpv1.CredentialsReference{
			Namespace: test.namespace, Name: "credential",
		}}
		got, err := secrets.of(t.Context(), p.kkp)
		if test.isRead != (string(got.Credentials["token"]) == "S3CRET") || (err == nil) != test.isRead {
			t.Errorf("%s: read %q, %v", test.namespace, got.Credentials, err)
		}
		if missing := (*MissingSecretError)(nil); !test.isRead && (!errors.As(err, &missing) || len(missing.Places) != 2) {
			t.Errorf("%s: %v", test.namespace, err)
		}
	}
}
