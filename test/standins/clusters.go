package standins

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/world"
)

// Kubernetes is the version of user clusters where a Shape doesn't say.
const Kubernetes = "v1.36.3"

// atOnce is how many requests are on their way at a time.
const atOnce = 16

// Clusters makes and changes KKP's Clusters on one API server.
type Clusters struct {
	client client.Client
}

// Shape is how some Clusters are. The functions get the Cluster's number; nil ones leave the field alone.
type Shape struct {
	// First number, and how many.
	First, Count int
	// Labels of each.
	Labels func(number int) map[string]string
	// Kubernetes version of each; default is the constant of the name.
	Kubernetes func(number int) string
	// Datacenter and Provider of each.
	Datacenter, Provider func(number int) string
}

// NewClusters installs the kinds first.
func NewClusters(t testing.TB, config *rest.Config) *Clusters {
	t.Helper()
	return &Clusters{client: world.Client(t, config)}
}

// Client is that of the test.
func (c *Clusters) Client() client.Client { return c.client }

// Name of the Cluster with that number.
func Name(number int) string { return fmt.Sprintf("c%05d", number) }

// NamespaceOf is where a Cluster's installations are.
func NamespaceOf(name string) string { return cluster.NamespacePrefix + name }

// ClusterOf is the Cluster that a namespace belongs to.
func ClusterOf(namespace string) string {
	return namespace[min(len(cluster.NamespacePrefix), len(namespace)):]
}

// Make makes Clusters that are up, with their namespaces, many at a time, and gives their names in order.
func (c *Clusters) Make(t testing.TB, shape Shape) []string {
	t.Helper()
	names := make([]string, shape.Count)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range names {
		number := shape.First + i
		names[i] = Name(number)
		group.Go(func() error { return c.make(ctx, shape.of(number)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("making Clusters: %v", err)
	}
	return names
}

// of is one Cluster, with the status that KKP gives it.
func (s Shape) of(number int) *kkpv1.Cluster {
	name := Name(number)
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.Version, made.Spec.Cloud.Datacenter, made.Spec.Cloud.ProviderName = Kubernetes[1:], "dc-1", "kubevirt"
	made.Status.Versions.ControlPlane = Kubernetes
	if s.Labels != nil {
		made.Labels = s.Labels(number)
	}
	if s.Kubernetes != nil {
		made.Status.Versions.ControlPlane = s.Kubernetes(number)
	}
	if s.Datacenter != nil {
		made.Spec.Cloud.Datacenter = s.Datacenter(number)
	}
	if s.Provider != nil {
		made.Spec.Cloud.ProviderName = s.Provider(number)
	}
	made.Status.NamespaceName, made.Status.ExtendedHealth.APIServer = NamespaceOf(name), kkpv1.HealthUp
	made.Status.Address = kkpv1.ClusterAddress{
		URL: "https://" + name + ".seed.example:6443", ExternalName: name + ".seed.example", Port: 6443, IP: "192.0.2.1",
		InternalName: "apiserver-external." + NamespaceOf(name) + ".svc.cluster.local.",
	}
	return made
}

// make makes one, the status last: it has what others wait for.
func (c *Clusters) make(ctx context.Context, wanted *kkpv1.Cluster) error {
	status := wanted.Status
	if err := c.client.Create(ctx, world.Namespace(status.NamespaceName)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.client.Create(ctx, wanted); err != nil {
		return err
	}
	wanted.Status = status
	return c.client.Status().Update(ctx, wanted)
}

// Relabel changes labels of a Cluster; "" takes one off.
func (c *Clusters) Relabel(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	c.change(t, name, func(changed *kkpv1.Cluster) {
		if changed.Labels == nil {
			changed.Labels = map[string]string{}
		}
		for label, value := range labels {
			changed.Labels[label] = value
			if value == "" {
				delete(changed.Labels, label)
			}
		}
	})
}

// Pause pauses a Cluster, or lets it go on.
func (c *Clusters) Pause(t testing.TB, name string, pause bool) {
	t.Helper()
	c.change(t, name, func(changed *kkpv1.Cluster) { changed.Spec.Pause = pause })
}

// Upgrade has a Cluster's control plane at another version; "" is none, as before a Cluster is up.
func (c *Clusters) Upgrade(t testing.TB, name, version string) {
	t.Helper()
	c.changeStatus(t, name, func(status *kkpv1.ClusterStatus) { status.Versions.ControlPlane = version })
}

// Health says what KKP says of the user cluster's API server. Installations of a dead cluster are played by Fate Unreachable.
func (c *Clusters) Health(t testing.TB, name, health string) {
	t.Helper()
	c.changeStatus(t, name, func(status *kkpv1.ClusterStatus) { status.ExtendedHealth.APIServer = health })
}

// Delete deletes a Cluster. Its namespace stays, with all in it, as long as nobody plays KKP there.
func (c *Clusters) Delete(t testing.TB, name string) {
	t.Helper()
	if err := c.client.Delete(t.Context(), &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatalf("deleting Cluster %q: %v", name, err)
	}
}

func (c *Clusters) change(t testing.TB, name string, change func(*kkpv1.Cluster)) {
	t.Helper()
	c.write(t, name, func(ctx context.Context, found *kkpv1.Cluster) error {
		change(found)
		return c.client.Update(ctx, found)
	})
}

func (c *Clusters) changeStatus(t testing.TB, name string, change func(*kkpv1.ClusterStatus)) {
	t.Helper()
	c.write(t, name, func(ctx context.Context, found *kkpv1.Cluster) error {
		change(&found.Status)
		return c.client.Status().Update(ctx, found)
	})
}

func (c *Clusters) write(t testing.TB, name string, write func(context.Context, *kkpv1.Cluster) error) {
	t.Helper()
	err := expect.PastConflicts(t.Context(), func() error {
		found := &kkpv1.Cluster{}
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		return write(t.Context(), found)
	})
	if err != nil {
		t.Fatalf("changing Cluster %q: %v", name, err)
	}
}
