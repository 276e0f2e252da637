package ocm

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

// Clusters of the fleet.
const (
	hubName  = "hub"
	userName = "user"
)

func TestMain(m *testing.M) {
	if long.Skips() {
		os.Exit(m.Run())
	}
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	fleet.Main(m, fleet.ClusterOptions{Name: hubName, Controllers: true}, fleet.ClusterOptions{Name: userName, Controllers: true})
}

// built are the programs of the test.
type built struct {
	// agent is upstream's, and kinds the folder with what it reads on a hub.
	agent, kinds string
	enter        string
}

var programs = sync.OnceValues(func() (built, error) {
	root, err := binaries.Root()
	if err != nil {
		return built{}, err
	}
	folder := filepath.Join(fleet.Shared().Folder(), "programs")
	module := filepath.Join(root, "hack", "ocm")
	cache, err := binaries.Cache()
	if err != nil {
		return built{}, err
	}
	made := built{enter: filepath.Join(folder, pod.Enter)}
	if made.agent, err = binaries.FindModule(context.Background(), root, cache, "ocm"); err != nil {
		return built{}, err
	}
	if err := binaries.BuildOwn(context.Background(), root, folder, pod.EnterPackage); err != nil {
		return built{}, err
	}
	output, err := exec.Command("go", "list", "-C", module, "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		return built{}, fmt.Errorf("finding OCM's kinds: %w", err)
	}
	made.kinds = filepath.Join(strings.TrimSpace(string(output)), "addon", "v1beta1")
	return made, nil
})
