package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// linesShown is the number of shown lines of a program's log, after a test that failed.
const linesShown = 20

// program is the master manager, built once into the shared fleet's folder.
var program = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	folder := fleet.Shared().Folder()
	err = binaries.BuildOwn(context.Background(), root, folder, "./cmd/master-controller-manager")
	return filepath.Join(folder, "master-controller-manager"), err
})

// programs counts the programs that were started.
var programs atomic.Int64

// RunMaster runs the program of the master manager, with Seeds and catalogues in one namespace and its objects on
// seeds in the other, until it is killed or the test ends.
func RunMaster(t testing.TB, kubeconfig []byte, platform, catalogue string) *fleet.Process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// It is removed with the fleet, after an interrupt too.
	folder := filepath.Join(fleet.Shared().Folder(), fmt.Sprintf("master-%d", programs.Add(1)))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	reach, reported := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "log")
	if err := os.WriteFile(reach, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := fleet.Shared().Run(fleet.Command{
		Name: "master-controller-manager", Path: path, Home: folder, Log: reported, Arguments: []string{
			"--kubeconfig", reach, "--namespace", platform, "--catalogue-namespace", catalogue,
			"--standalone", "--kkp-version=2.31.0", "--leader-elect=false", "--store-folder", filepath.Join(folder, "store"),
			"--metrics-bind-address=0", "--health-probe-bind-address=0",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the end of the log of the master manager:\n%s", fleet.Tail(reported, linesShown))
		}
	})
	return process
}
