package distributor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
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
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, kkpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	for _, cluster := range clusters {
		config := w.fleet.Cluster(cluster.Name).Config
		if err := fleet.InstallCRDs(b.Context(), config, fleet.CRDs(b)...); err != nil {
			b.Fatal(err)
		}
		made, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			b.Fatal(err)
		}
		w.clients[cluster.Name] = made
	}
	w.master = w.clients["master"]
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform}})
	return w
}

func (w *platformWorld) create(object client.Object) {
	w.b.Helper()
	if err := w.master.Create(w.b.Context(), object); err != nil {
		w.b.Fatal(err)
	}
}

// startManager runs the master manager as a process of its own.
func (w *platformWorld) startManager(further ...string) {
	w.b.Helper()
	root, err := binaries.Root()
	if err != nil {
		w.b.Fatal(err)
	}
	program := filepath.Join(w.fleet.Folder(), "master-controller-manager")
	build := exec.CommandContext(w.b.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/master-controller-manager")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		w.b.Fatalf("building the manager: %v\n%s", err, output)
	}
	kubeconfig := filepath.Join(w.fleet.Folder(), "master.yaml")
	if err := os.WriteFile(kubeconfig, w.fleet.Cluster("master").Kubeconfig, 0o600); err != nil {
		w.b.Fatal(err)
	}
	arguments := append([]string{
		"--kubeconfig", kubeconfig, "--leader-elect=false", "--standalone", "--kkp-version=2.31.0",
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--store-folder", filepath.Join(w.fleet.Folder(), "store"),
	}, further...)
	w.process, err = w.fleet.Run(fleet.Command{Name: "master-controller-manager", Path: program, Arguments: arguments})
	if err != nil {
		w.b.Fatal(err)
	}
}

// memory is the largest resident memory that the manager ever had, in bytes.
func (w *platformWorld) memory() int64 {
	w.b.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", w.process.PID()))
	if err != nil {
		w.b.Fatal(err)
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if fields := strings.Fields(scanner.Text()); len(fields) == 3 && fields[0] == "VmHWM:" {
			kibibytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				w.b.Fatal(err)
			}
			return kibibytes << 10
		}
	}
	w.b.Fatal("the kernel does not say how much memory the manager took")
	return 0
}
