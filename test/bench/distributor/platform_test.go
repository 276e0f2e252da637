package distributor

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// platformWorld is a master, its seeds and the master manager.
type platformWorld struct {
	b       *testing.B
	fleet   *fleet.Fleet
	master  client.Client
	clients map[string]client.Client
	process *fleet.Process
}

func newPlatform(b *testing.B, count int) *platformWorld {
	b.Helper()
	clusters := []fleet.ClusterOptions{{Name: "master"}}
	for i := range count {
		clusters = append(clusters, fleet.ClusterOptions{Name: seedName(i)})
	}
	w := &platformWorld{b: b, fleet: fleet.ForTest(b, clusters...), clients: map[string]client.Client{}}
	for _, cluster := range clusters {
		w.clients[cluster.Name] = kit.Client(b, w.fleet.Cluster(cluster.Name).Config)
	}
	w.master = w.clients["master"]
	expect.Create(w.b, w.master, kit.Namespace(platform))
	return w
}

// startManager runs the master manager as a process of its own.
func (w *platformWorld) startManager(further ...string) {
	w.b.Helper()
	root, err := binaries.Root()
	expect.NoError(w.b, err)
	program := filepath.Join(w.fleet.Folder(), "master-controller-manager")
	expect.NoError(w.b, binaries.BuildOwn(w.b.Context(), root, w.fleet.Folder(), "./cmd/master-controller-manager"))
	kubeconfig := filepath.Join(w.fleet.Folder(), "master.yaml")
	expect.NoError(w.b, os.WriteFile(kubeconfig, w.fleet.Cluster("master").Kubeconfig, 0o600))
	arguments := append([]string{
		"--kubeconfig", kubeconfig, "--leader-elect=false", "--standalone", "--kkp-version=2.31.0",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--store-folder", filepath.Join(w.fleet.Folder(), "store"),
	}, further...)
	w.process, err = w.fleet.Run(fleet.Command{Name: "master-controller-manager", Path: program, Arguments: arguments})
	expect.NoError(w.b, err)
}

// memory is the largest resident memory that the manager ever had, in bytes.
func (w *platformWorld) memory() int64 {
	w.b.Helper()
	peak, err := fleet.PeakMemory(w.process.PID())
	expect.NoError(w.b, err)
	return peak
}
