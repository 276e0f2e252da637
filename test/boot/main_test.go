package boot

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/world"
)

// Names on the platform.
const (
	platformNamespace  = "kubermatic"
	catalogueNamespace = "addon-catalogue"
	team               = "team"
)

func TestMain(m *testing.M) {
	if long.Skips() {
		os.Exit(m.Run())
	}
	ctrl.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	fleet.Main(m,
		fleet.ClusterOptions{Name: "management", Controllers: true},
		fleet.ClusterOptions{Name: listed, Release: binaries.Older}, // which may be upgraded
		fleet.ClusterOptions{Name: inSet, Release: binaries.Older})
}

// platform is a management cluster with Cluster API, where each Cluster has the fleet's API server of its name.
type platform struct {
	t       *testing.T
	client  client.WithWatch
	sources *fleet.Sources
	// built is told how the build of the program ended, in the fleet's folder.
	built chan error
}

const program = "seed-controller-manager"

// newPlatform has Cluster API and a ClusterClass, and neither catalogues nor Clusters.
func newPlatform(t *testing.T) *platform {
	t.Helper()
	built := make(chan error, 1)
	go func() { built <- build(t.Context()) }() // meanwhile Cluster API starts
	management := fleet.Shared().Cluster("management")
	clusterapi.ForTest(t, fleet.Shared(), management, clusterapi.Options{})
	clusterapi.Play(t, management, clusterapi.Provider{
		ServerOf: func(cluster types.NamespacedName) *fleet.Cluster { return fleet.Shared().Cluster(cluster.Name) },
	})
	expect.NoError(t, fleet.InstallCRDs(t.Context(), management.Config, fleet.CRDs(t)[0]))
	made, err := client.NewWithWatch(management.Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(t, err)
	p := &platform{t: t, client: made, sources: fleet.SourcesForTest(t), built: built}
	expect.Create(t, made, world.Namespace(platformNamespace), world.Namespace(catalogueNamespace), world.Namespace(team), given.AuthoritySecret(
		catalogueNamespace, p.sources.CA,
	))
	expect.NoError(t, (clusterapi.Class{Namespace: team}).Create(t.Context(), made))
	return p
}

// build makes the program of a seed.
func build(ctx context.Context) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	return binaries.BuildOwn(ctx, root, fleet.Shared().Folder(), "./cmd/"+program)
}

// start runs the program of a seed for Clusters of Cluster API, and returns once it is ready.
func (p *platform) start() {
	p.t.Helper()
	expect.NoError(p.t, <-p.built)
	home := disk.TempDir(p.t)
	kubeconfig, reported, probes := filepath.Join(home, "kubeconfig"), filepath.Join(home, "log"), fleet.Address(p.t)
	expect.NoError(p.t, os.WriteFile(kubeconfig, fleet.Shared().Cluster("management").Kubeconfig, 0o600))
	process, err := fleet.Shared().Run(fleet.Command{
		Name: program, Path: filepath.Join(fleet.Shared().Folder(), program), Home: home, Log: reported, Arguments: []string{
			"--kubeconfig", kubeconfig, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace, "--leader-elect=false",
			"--cluster-kinds=cluster-api", "--cluster-api-providers=fleetcontrolplanes." + clusterapi.ControlPlaneGroup,
			"--allow-cluster-cidrs=127.0.0.0/8", "--allow-source-cidrs=127.0.0.0/8", "--store-folder", filepath.Join(home, "store"),
			"--query-bind-address=0", "--metrics-bind-address=0", "--health-probe-bind-address", probes,
		},
	})
	expect.NoError(p.t, err)
	p.t.Cleanup(func() {
		process.Kill()
		if p.t.Failed() {
			p.t.Logf("the end of the log of the seed's manager:\n%s", fleet.Tail(reported, 20))
		}
	})
	err = process.Await(p.t.Context(), "the manager to be ready", func(ctx context.Context) error {
		_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
		return err
	})
	expect.NoError(p.t, err)
}
