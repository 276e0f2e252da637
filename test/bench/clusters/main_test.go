package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/binaries"
)

// folder takes the program.
var folder string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	os.Exit(run(m))
}

func run(m *testing.M) int {
	made, err := os.MkdirTemp("", "trellis-clusters-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(made)
	folder = made
	return m.Run()
}

// program is the seed manager, built once.
var program = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "seed-controller-manager"), binaries.BuildOwn(context.Background(), root, folder, "./cmd/seed-controller-manager")
})
