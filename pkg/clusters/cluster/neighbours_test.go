package cluster

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// neighbour is a Cluster of Cluster API, ready in its own status, in the namespace of a place.
func (p *place) neighbour(name string) target.Description {
	found := &capiv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.kkp.Status.NamespaceName, Name: name, UID: types.UID(name + "-uid"),
	}}
	found.Status.Initialization.ControlPlaneInitialized = true
	return describeCAPI(ofVersion(found, capiv1.V1Beta2), known{version: binaries.Older})
}

// kubeconfig writes the kubeconfig of a neighbour.
func (p *place) kubeconfig(of target.Description, content []byte) {
	p.t.Helper()
	secret := given.Secret(of.Namespace, of.Name+"-kubeconfig", map[string][]byte{"value": content})
	err := p.seed.Update(p.t.Context(), secret)
	if err != nil {
		err = p.seed.Create(p.t.Context(), secret)
	}
	expect.NoError(p.t, err)
}

// connected waits for a connection to a neighbour.
func connected(t *testing.T, c *Connections, to target.Description) *Connection {
	t.Helper()
	var connection *Connection
	expect.Eventually(t, expect.Patience, func() (err error) {
		connection, err = c.Get(to, "test", nil)
		return err
	})
	return connection
}

// TestClustersOfANamespaceHaveConnectionsOfTheirOwn: A namespace has two Clusters of Cluster API, and KKP's. The test
// fails when one gets the connection, identity or record of another, or when a changed kubeconfig reconnects another.
func TestClustersOfANamespaceHaveConnectionsOfTheirOwn(t *testing.T) {
	p := newPlace(t, "neighbours")
	one, two := p.neighbour("one"), p.neighbour("two")
	p.kubeconfig(one, fleet.Shared().Cluster("user").Kubeconfig)
	p.kubeconfig(two, fleet.Shared().Cluster("other").Kubeconfig)
	namespace := p.kkp.Status.NamespaceName
	c := p.connections()
	c.AllowCIDRs = loopback
	c.UseIdentities(NewIdentities(p.seed, p.seed, existing{}, namespace))
	if got := []string{connected(t, c, one).KubeVersion, connected(t, c, two).KubeVersion}; !slices.Equal(got, []string{"v" + binaries.Older, "v" + binaries.Newer}) {
		t.Errorf("the versions are %v", got)
	}
	if _, err := c.Get(Describe(p.kkp), "test", nil); err == nil {
		t.Error("KKP's Cluster of the namespace is connected by a neighbour's kubeconfig")
	}
	var kept corev1.ConfigMapList
	expect.List(t, p.seed, &kept, client.InNamespace(namespace), client.HasLabels{v1.LabelUserCluster})
	var got []string
	for i := range kept.Items {
		cluster, _ := identified(&kept.Items[i])
		got = append(got, kept.Items[i].Name+" is of "+cluster.Kind.Group+" "+cluster.Name)
	}
	want := []string{
		"addon-cluster-" + namespace + ".one is of cluster.x-k8s.io one", "addon-cluster-" + namespace + ".two is of cluster.x-k8s.io two",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identities (-want +got):\n%s", diff)
	}

	before := connected(t, c, two)
	p.kubeconfig(one, fleet.Shared().Cluster("other").Kubeconfig)
	changed, isKubeconfig := KubeconfigOf(client.ObjectKey{Namespace: namespace, Name: "one-kubeconfig"})
	if !isKubeconfig {
		t.Fatal("a kubeconfig is not known by its name")
	}
	c.Refresh(changed)
	expect.Eventually(t, expect.Patience, func() error {
		_, err := c.Get(one, "test", nil)
		var problem *NotConnectedError
		if !errors.As(err, &problem) || problem.Reason != v1.ReasonClusterSwapped && problem.Reason != v1.ReasonClusterShared {
			return errors.New("still over the former one")
		}
		return nil
	})
	if connected(t, c, two) != before {
		t.Error("the neighbour was connected anew")
	}
	c.Forget(one.Ref)
	if connected(t, c, two) != before {
		t.Error("the neighbour was forgotten")
	}
}

// TestKubeconfigsOfTenantsLeadNowhereElse (AC51): a kubeconfig that tenants write leads to no address of ours, runs
// nothing and reads no file. The test fails when one does, when KKP's is refused too, or when the error does not name
// the Secret.
func TestKubeconfigsOfTenantsLeadNowhereElse(t *testing.T) {
	p := newPlace(t, "tenants")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c := p.connections()
	p.live(c)
	plain := string(fleet.Shared().Cluster("user").Kubeconfig)
	for name, test := range map[string]struct{ content, reason, says string }{
		"loopback": {plain, v1.ReasonClusterUnreachable, "--allow-cluster-cidrs"},
		"metadata": {strings.ReplaceAll(plain, "127.0.0.1", "169.254.169.254"), v1.ReasonClusterUnreachable, "metadata"},
		"exec":     {strings.Replace(plain, "  user:\n", "  user:\n    exec: {command: sh}\n", 1), v1.ReasonKubeconfigInvalid, `Secret "exec-kubeconfig" in namespace "cluster-tenants": kubeconfig field "users[].user.exec"`},
	} {
		of := p.neighbour(name)
		p.kubeconfig(of, []byte(test.content))
		expect.Eventually(t, expect.Patience, func() error {
			_, err := c.Get(of, "test", nil)
			var problem *NotConnectedError
			if !errors.As(err, &problem) || problem.Reason != test.reason || !strings.Contains(problem.Message, test.says) {
				return errors.Join(errors.New(name), err)
			}
			return nil
		})
	}
	missing := p.neighbour("missing")
	expect.Eventually(t, expect.Patience, func() error {
		_, err := c.Get(missing, "test", nil)
		if err == nil || !strings.Contains(err.Error(), `has no Secret "missing-kubeconfig" with key "value"`) {
			return errors.Join(errors.New("missing"), err)
		}
		return nil
	})
}

// TestIdentitiesOfNeighboursThatAreGone fails when the identity of a Cluster that is gone stays, or when one is
// removed of a neighbour that exists, that has an installation, or whose kind is not served.
func TestIdentitiesOfNeighboursThatAreGone(t *testing.T) {
	p := newPlace(t, "gone-neighbours")
	expect.NoError(t, fleet.InstallCRDs(t.Context(), fleet.Shared().Cluster("seed").Config, fleet.CRDs(t)...))
	namespace := p.kkp.Status.NamespaceName
	clock := testingclock.NewFakePassiveClock(time.Now())
	exists := target.Ref{Kind: target.KindClusterAPI, Namespace: namespace, Name: "exists"}
	identities := NewIdentities(p.seed, p.seed, listing{existing{clusters: map[target.Ref]bool{exists: true}}}, namespace)
	identities.now = clock.Now
	var reported []target.Ref
	identities.OnForgotten(func(_ context.Context, cluster target.Ref) error { reported = append(reported, cluster); return nil })
	for _, name := range []string{"exists", "left", "installed"} {
		of := target.Ref{Kind: target.KindClusterAPI, Namespace: namespace, Name: name, UID: "u"}
		expect.NoError(t, identities.write(t.Context(), of, bond{cluster: "u", userCluster: types.UID(name), origin: "u"}))
	}
	made := given.Installation(namespace, "web", "web", "")
	made.Spec.ClusterName = "installed"
	expect.Create(t, p.seed, made)
	for range 2 {
		if _, err := identities.RemoveGone(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(clock.Now().Add(retention))
	}
	if diff := cmp.Diff([]target.Ref{{Kind: target.KindClusterAPI, Namespace: namespace, Name: "left"}}, reported); diff != "" {
		t.Errorf("forgotten are (-want +got):\n%s", diff)
	}
}

// listing lists no Clusters, as a stale cache does.
type listing struct{ existing }

func (listing) List(context.Context) ([]target.Description, error) { return nil, nil }

// TestTemplateDataOfClusterAPI fails when templates of a Cluster of Cluster API see other names than KKP's, or the
// fields that Cluster API and Trellis write during operation.
func TestTemplateDataOfClusterAPI(t *testing.T) {
	found := &capiv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "one", Labels: map[string]string{"ring": "0"},
		Annotations: map[string]string{"note": "1", "before-upgrade.hook.cluster.cluster.x-k8s.io/trellis": ""},
	}}
	found.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/16"}
	found.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.0/12"}
	found.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	found.Spec.ControlPlaneEndpoint = capiv1.Endpoint{Host: "192.0.2.1", Port: 6443}
	found.Spec.InfrastructureRef.Kind = "AWSCluster"
	data, err := (&Platform{}).TemplateData(t.Context(), describeCAPI(found, known{version: "1.36.3"}), map[string]any{"a": "b"})
	expect.NoError(t, err)
	network := data.Cluster.Network
	got := []any{
		data.Cluster.Name, data.Cluster.Namespace, data.Cluster.MajorMinorVersion, data.Cluster.CloudProviderName, data.Cluster.Annotations,
		data.Cluster.Address, network.DNSClusterIP, network.DNSResolverIP, network.DNSDomain, network.PodCIDRIPv4, data.Variables,
	}
	want := []any{
		"one", "team", "1.36", "aws", map[string]string{"note": "1"},
		templatedata.ClusterAddress{URL: "https://192.0.2.1:6443", Port: 6443, IP: "192.0.2.1", APIServerExternalAddress: "192.0.2.1"},
		"10.96.0.10", "10.96.0.10", "cluster.local", "10.0.0.0/16", map[string]any{"a": "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if same, err := NewSecrets(nil, "").AddTo(t.Context(), data, describeCAPI(found, known{})); err != nil || !reflect.DeepEqual(data, same) {
		t.Errorf("with the Secrets that it refers to: %v", err)
	}
}
