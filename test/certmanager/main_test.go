package certmanager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/pod"
)

// charts of which each has an API server of its own, by its name.
var charts = []string{"trellis-master", "trellis-seed"}

func TestMain(m *testing.M) {
	if long.Skips() {
		os.Exit(m.Run())
	}
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	fleet.Main(m, fleet.ClusterOptions{Name: charts[0]}, fleet.ClusterOptions{Name: charts[1]})
}

// built are the programs of a test: cert-manager's controllers, which are a module of their own, and the managers.
type built struct {
	// certManager and crds are upstream's program and its folder of kinds.
	certManager, crds string
	managers          string
}

var programs = sync.OnceValues(func() (built, error) {
	root, err := binaries.Root()
	if err != nil {
		return built{}, err
	}
	folder := filepath.Join(fleet.Shared().Folder(), "programs")
	module := filepath.Join(root, "hack", "controlplanes", "cert-manager")
	cache, err := binaries.Cache()
	if err != nil {
		return built{}, err
	}
	made := built{managers: folder}
	if made.certManager, err = binaries.FindModule(context.Background(), root, cache, "cert-manager"); err != nil {
		return built{}, err
	}
	if err := binaries.BuildOwn(context.Background(), root, folder, "./cmd/...", pod.EnterPackage); err != nil {
		return built{}, err
	}
	output, err := exec.Command("go", "list", "-C", module, "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		return built{}, fmt.Errorf("finding cert-manager's kinds: %w", err)
	}
	made.crds = filepath.Join(strings.TrimSpace(string(output)), "deploy", "crds")
	return made, nil
})
