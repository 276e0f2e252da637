package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/pod"
	kit "github.com/trellis-addons/trellis/test/world"
)

// Names on every platform.
const (
	masterName, seedName, userName = "master", "seed", "user"
	platformNamespace              = "kubermatic"
	catalogueNamespace             = "addon-catalogue"
	clusterName                    = "one"
	clusterNamespace               = "cluster-one"
	masterChart, seedChart         = "trellis-master", "trellis-seed"
	distributor                    = "trellis-distributor"
)

// platform is a master, a seed and a user cluster, each on an API server of its own, and sources.
type platform struct {
	t       *testing.T
	fleet   *fleet.Fleet
	sources *fleet.Sources
	// master and seed are clients of an admin.
	master, seed, user client.WithWatch
	// installing is the release whose charts are being installed: its programs do their Jobs.
	installing release
	managers   map[string]*manager
}

func account(name string) string { return "system:serviceaccount:" + platformNamespace + ":" + name }

// newPlatform starts the API servers. More of them are for seeds that come later.
func newPlatform(t *testing.T, more ...fleet.ClusterOptions) *platform {
	t.Helper()
	clusters := append([]fleet.ClusterOptions{
		{Name: masterName, Audit: []string{account(masterChart)}},
		{Name: seedName, Audit: []string{account(seedChart), account(distributor)}, FreeOwners: true}, // former releases need that
		{Name: userName, Audit: []string{"admin"}},
	}, more...)
	p := &platform{
		t: t, fleet: fleet.ForTest(t, clusters...), sources: fleet.SourcesForTest(t), managers: map[string]*manager{},
	}
	p.master, p.seed, p.user = p.client(masterName), p.client(seedName), p.client(userName)
	return p
}

// client of an API server that has no kinds yet.
func (p *platform) client(name string) client.WithWatch {
	p.t.Helper()
	made, err := client.NewWithWatch(p.fleet.Cluster(name).Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(p.t, err)
	return made
}

// standaloneKinds installs what stands for KKP's kinds.
func (p *platform) standaloneKinds(of release, where string) {
	p.t.Helper()
	expect.NoError(p.t, fleet.InstallCRDs(p.t.Context(), p.fleet.Cluster(where).Config, of.standalone))
}

// values of both charts. Webhooks are off: nothing leads from an API server to a Service here.
func values(chart string) map[string]any {
	standalone := map[string]any{"enabled": true}
	chosen := map[string]any{"standalone": standalone, "webhook": map[string]any{"enabled": false}}
	if chart == masterChart {
		standalone["kkpVersion"] = "2.31.0"
		return chosen
	}
	chosen["driftInterval"], chosen["sources"] = "10s", map[string]any{"allowCIDRs": []any{"127.0.0.0/8"}}
	return chosen
}

// install has Helm install or upgrade a chart, with its hooks.
func (p *platform) install(of release, chart, where string) {
	p.t.Helper()
	p.installing = of
	content, err := yaml.Marshal(values(chart))
	expect.NoError(p.t, err)
	file := filepath.Join(p.t.TempDir(), "values.yaml")
	expect.NoError(p.t, os.WriteFile(file, content, 0o600))
	p.helm(where, "upgrade", "--install", chart, filepath.Join(of.charts, chart), "--create-namespace", "--values", file)
}

func (p *platform) helm(where string, arguments ...string) {
	p.t.Helper()
	output, err := charts.Helm(p.t, p.fleet.Cluster(where), append(arguments, "--namespace", platformNamespace)...)
	if err != nil {
		p.t.Fatalf("helm %v: %v\n%s", arguments, err, output)
	}
}

// playJobs runs the Jobs of charts on an API server, by the programs of the release that is being installed.
func (p *platform) playJobs(where string) *charts.Jobs {
	p.t.Helper()
	return charts.PlayJobs(p.t, p.node(where, p.t.TempDir()), func(container *pod.Container, name string) error {
		container.Program = p.installing.program(name)
		return nil
	})
}

// apply the objects of a file.
func (p *platform) apply(with client.Client, file string) {
	p.t.Helper()
	content, err := os.ReadFile(file)
	expect.NoError(p.t, err)
	objects, err := charts.Documents(file, string(content))
	expect.NoError(p.t, err)
	for _, object := range objects {
		configuration := client.ApplyConfigurationFromUnstructured(object)
		expect.NoError(p.t, with.Apply(p.t.Context(), configuration, client.FieldOwner("admin"), client.ForceOwnership))
	}
}

// ensure makes an object, unless it is there.
func (p *platform) ensure(with client.Client, objects ...client.Object) {
	p.t.Helper()
	expect.Ensure(p.t, with, objects...)
}

// connectSeed gives the master the kubeconfig of a seed, with the rights that a release asks for.
func (p *platform) connectSeed(of release) {
	p.t.Helper()
	p.apply(p.seed, of.rights)
	p.ensure(p.master, given.Seed(platformNamespace, seedName, p.kubeconfig(seedName, distributor))...)
	p.ensure(p.master, given.AuthoritySecret(platformNamespace, p.sources.CA))
}

// connectCluster makes the Cluster, and gives its namespace the kubeconfig. The seed's manager runs.
func (p *platform) connectCluster() {
	p.t.Helper()
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}, Spec: kkpv1.ClusterSpec{
		HumanReadableName: clusterName, Version: binaries.Older, Cloud: kkpv1.CloudSpec{Datacenter: "here", ProviderName: "bringyourown"},
	}}
	p.ensure(p.seed, made)
	expect.Object(p.t, p.seed, kit.Namespace(clusterNamespace), func(*corev1.Namespace) error { return nil })
	p.ensure(p.seed, given.Kubeconfig(clusterNamespace, p.fleet.Cluster(userName).Kubeconfig))
	expect.Object(p.t, p.seed, made, func(found *kkpv1.Cluster) error {
		if found.Status.ExtendedHealth.APIServer != kkpv1.HealthUp || found.Status.Versions.ControlPlane == "" {
			return fmt.Errorf("the Cluster says %+v", found.Status)
		}
		return nil
	})
}

// specOf is that of the manager's pod, as the API server has the Deployment.
func (p *platform) specOf(chart, where string) corev1.PodSpec {
	p.t.Helper()
	found := &appsv1.Deployment{}
	expect.Get(p.t, p.client(where), client.ObjectKey{Namespace: platformNamespace, Name: chart}, found)
	return found.Spec.Template.Spec
}

// await waits longer than expect does: there are hundreds of objects.
func (p *platform) await(holds func(context.Context) error) {
	p.t.Helper()
	expect.Eventually(p.t, patience, func() error {
		for _, one := range p.managers {
			if failure := one.process.Failure(); failure != nil {
				p.t.Fatal(failure)
			}
		}
		return holds(p.t.Context())
	})
}
