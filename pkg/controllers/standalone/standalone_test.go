package standalone

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// platformNamespace is where the identities of user clusters are kept.
const platformNamespace = "default"

// probeInterval is short, so that health is seen to change.
const probeInterval = 500 * time.Millisecond

// Namespaces only go where a controller-manager empties them.
func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed", Controllers: true},
		fleet.ClusterOptions{Name: "user", Release: binaries.Newer}) // which is killed
}

// seed is a client of the seed, on which the controller runs in the manager until the test ends.
func seed(t *testing.T, workerName string) (client.Client, *kit.Manager) {
	t.Helper()
	rest := fleet.Shared().Cluster("seed").Config
	direct := kit.Client(t, rest)
	made := kit.Master(t, rest)
	made.SetUp(New(Dependencies{
		Client: made.GetClient(), Reader: made.GetAPIReader(), WorkerName: workerName, Interval: probeInterval,
		Identities: cluster.NewIdentities(made.GetClient(), made.GetAPIReader(), nil, platformNamespace),
	}))
	made.Run()
	return direct, made
}

func create(t *testing.T, c client.Client, kkp *kkpv1.Cluster) *kkpv1.Cluster {
	t.Helper()
	expect.Create(t, c, kkp)
	return kkp
}

func named(name string) *kkpv1.Cluster {
	return &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kkpv1.LabelWorkerName: ""}}}
}

func keep(t *testing.T, c client.Client, namespace string, kubeconfig []byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "internal-admin-kubeconfig"}}
	expect.Put(t, c, secret, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"kubeconfig": kubeconfig} })
}

// health waits for what the status says of the API server.
func health(t *testing.T, c client.Client, kkp *kkpv1.Cluster, version, health string) {
	t.Helper()
	expect.Object(t, c, kkp, func(k *kkpv1.Cluster) error {
		if k.Status.Versions.ControlPlane != version || k.Status.ExtendedHealth.APIServer != health {
			return fmt.Errorf("got version %q and health %q, want %q and %q",
				k.Status.Versions.ControlPlane, k.Status.ExtendedHealth.APIServer, version, health)
		}
		return nil
	})
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-" + name}}
}

func made(*corev1.Namespace) error { return nil }

func TestLifeOfACluster(t *testing.T) {
	c, manager := seed(t, "")
	user := fleet.Shared().Cluster("user")
	kkp := create(t, c, named("life"))
	expect.Object(t, c, namespaceOf("life"), func(namespace *corev1.Namespace) error {
		if owner := metav1.GetControllerOf(namespace); owner == nil || owner.UID != kkp.UID {
			return errors.New("the namespace is not the Cluster's")
		}
		return nil
	})
	health(t, c, kkp, "", kkpv1.HealthDown)
	if kkp.Status.NamespaceName != "cluster-life" {
		t.Errorf("got namespace name %q", kkp.Status.NamespaceName)
	}

	begin := time.Now()
	keep(t, c, "cluster-life", user.Kubeconfig)
	health(t, c, kkp, binaries.Newer, kkpv1.HealthUp)
	t.Logf("up %s after the Secret came", time.Since(begin))
	before := kkp.ResourceVersion
	whileProbed(t, manager, kkp.Name, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(kkp), kkp); err != nil || kkp.ResourceVersion != before {
			return fmt.Errorf("its facts stay the same, and it was written: %+v, %v", kkp.Status, err)
		}
		return nil
	})

	user.StopServer()
	health(t, c, kkp, binaries.Newer, kkpv1.HealthDown)
	expect.NoError(t, user.StartServer(t.Context()))
	health(t, c, kkp, binaries.Newer, kkpv1.HealthUp)

	inside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster-life", Name: "held", Finalizers: []string{"example.com/held"},
	}}
	expect.NoError(t, errors.Join(c.Create(t.Context(), inside), c.Delete(t.Context(), kkp)))
	expect.Object(t, c, namespaceOf("life"), func(namespace *corev1.Namespace) error {
		if namespace.DeletionTimestamp.IsZero() {
			return errors.New("not being deleted")
		}
		return nil
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(kkp), kkp); err != nil {
		t.Fatalf("the Cluster went before its namespace: %v", err)
	}
	inside.Finalizers = nil
	expect.Update(t, c, inside)
	expect.Gone(t, c, kkp)
	expect.Gone(t, c, namespaceOf("life"))
}

// whileProbed fails the test unless holds returns nil while a Cluster is probed: it is reconciled at each interval, which begins a probe, and
// at the probe's end; some passes more may come with what was written before.
func whileProbed(t *testing.T, manager *kit.Manager, name string, holds func() error) {
	t.Helper()
	before := manager.Ended("standalone", "", name)
	expect.Eventually(t, expect.Patience, func() error {
		ended := manager.Ended("standalone", "", name) - before
		if err := holds(); err != nil {
			t.Fatalf("after %d passes: %v", ended, err)
		}
		if ended < 6 {
			return fmt.Errorf("%d passes have ended", ended)
		}
		return nil
	})
}

func TestDeadServersHoldNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer listener.Close()
	c, _ := seed(t, "")
	user := fleet.Shared().Cluster("user")
	dead := strings.Replace(string(user.Kubeconfig), user.URL(), "https://"+listener.Addr().String(), 1)
	for i := range 8 {
		kkp := create(t, c, named(fmt.Sprintf("dead-%d", i)))
		expect.Object(t, c, namespaceOf(kkp.Name), made)
		keep(t, c, "cluster-"+kkp.Name, []byte(dead))
	}
	alive := create(t, c, named("alive"))
	expect.Object(t, c, namespaceOf("alive"), made)
	keep(t, c, "cluster-alive", user.Kubeconfig)
	health(t, c, alive, binaries.Newer, kkpv1.HealthUp)
	for i := range 8 {
		health(t, c, named(fmt.Sprintf("dead-%d", i)), "", kkpv1.HealthDown)
	}
}

func TestRefusedKubeconfig(t *testing.T) {
	c, manager := seed(t, "")
	user := fleet.Shared().Cluster("user")
	kkp := create(t, c, named("exec"))
	expect.Object(t, c, namespaceOf("exec"), made)
	keep(t, c, "cluster-exec", []byte(strings.Replace(string(user.Kubeconfig), "token:", "exec: {command: sh}\n    token:", 1)))
	whileProbed(t, manager, kkp.Name, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(kkp), kkp); err != nil || kkp.Status.ExtendedHealth.APIServer == kkpv1.HealthUp {
			return fmt.Errorf("a program was asked for a token: %+v, %v", kkp.Status, err)
		}
		return nil
	})
	keep(t, c, "cluster-exec", user.Kubeconfig)
	health(t, c, kkp, binaries.Newer, kkpv1.HealthUp)
}

// TestSwappedClusterHasNoVersion holds that a Cluster does not get the version of a user cluster
// that is not its own, until somebody confirms that it is.
func TestSwappedClusterHasNoVersion(t *testing.T) {
	c, _ := seed(t, "")
	user := fleet.Shared().Cluster("user")
	kkp := create(t, c, named("swapped"))
	expect.Object(t, c, namespaceOf("swapped"), made)
	err := c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: "addon-cluster-swapped"},
		Data: map[string]string{
			"clusterUID": string(kkp.UID), "userClusterUID": "11111111-2222-3333-4444-555555555555", "originUID": string(kkp.UID),
		},
	})
	expect.NoError(t, err)
	keep(t, c, "cluster-swapped", user.Kubeconfig)
	health(t, c, kkp, "", kkpv1.HealthUp)

	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	inside, err := client.New(user.Config, client.Options{})
	expect.NoError(t, err)
	expect.Read(t, inside, system)
	expect.Annotate(t, c, kkp, v1.AnnotationConfirmCluster, string(system.UID))
	health(t, c, kkp, binaries.Newer, kkpv1.HealthUp)
}

func TestClustersThatAreLeftAlone(t *testing.T) {
	c, _ := seed(t, "")
	paused := named("paused")
	paused.Spec.Pause = true
	others := named("others")
	others.Labels[kkpv1.LabelWorkerName] = "somebody"
	create(t, c, paused)
	create(t, c, others)
	long := create(t, c, named(strings.Repeat("l", 60)))
	elsewhere := create(t, c, named("elsewhere")) // its status will name a namespace that is not its own
	expect.Object(t, c, namespaceOf("elsewhere"), made)
	expect.Object(t, c, elsewhere, func(k *kkpv1.Cluster) error {
		k.Status.NamespaceName = "kube-system"
		return c.Status().Update(t.Context(), k)
	})
	expect.Delete(t, c, elsewhere)
	expect.Gone(t, c, elsewhere)
	var system corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system); err != nil || system.DeletionTimestamp != nil {
		t.Errorf("kube-system was touched: %v", err)
	}
	for _, kkp := range []*kkpv1.Cluster{paused, others, long} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(kkp), kkp); err != nil || kkp.Status.NamespaceName != "" {
			t.Errorf("Cluster %q was touched, or %v", kkp.Name, err)
		}
		touched := len(kkp.Finalizers) > 0
		if touched && kkp != long {
			t.Errorf("Cluster %q has finalizers %q", kkp.Name, kkp.Finalizers)
		}
	}
}

func TestPreviousNamespaceIsWaitedFor(t *testing.T) {
	c, _ := seed(t, "")
	previous := namespaceOf("again")
	inside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: previous.Name, Name: "held", Finalizers: []string{"example.com/held"},
	}}
	expect.NoError(t, errors.Join(c.Create(t.Context(), previous), c.Create(t.Context(), inside), c.Delete(t.Context(), previous)))
	previousUID := previous.UID
	kkp := create(t, c, named("again"))
	expect.Object(t, c, kkp, func(k *kkpv1.Cluster) error {
		if len(k.Finalizers) != 1 || k.Finalizers[0] != v1.FinalizerCleanupNamespace {
			return fmt.Errorf("got finalizers %q", k.Finalizers)
		}
		return nil
	})
	inside.Finalizers = nil
	expect.Update(t, c, inside)
	expect.Object(t, c, namespaceOf("again"), func(namespace *corev1.Namespace) error {
		if namespace.UID == previousUID {
			return errors.New("still the former one")
		}
		return nil
	})
}
