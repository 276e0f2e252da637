package seeds_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// program is the master manager, built once into the fleet's folder.
var program = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(fleet.Shared().Folder(), "master-controller-manager")
	build := exec.Command("go", "build", "-o", path, "./cmd/master-controller-manager")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the master manager: %w\n%s", err, output)
	}
	return path, nil
})

// startMaster runs the master manager, until it is killed or the test ends.
func (w *world) startMaster() {
	t := w.t
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(fleet.Shared().Folder(), "master-") // it goes with the fleet, after an interrupt too
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, told := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "log")
	if err := os.WriteFile(kubeconfig, w.hub.Kubeconfig(t, masterName), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := fleet.Shared().Run(fleet.Command{
		Name: "master-controller-manager", Path: path, Home: folder, Log: told, Arguments: []string{
			"--kubeconfig", kubeconfig, "--namespace", w.platform, "--catalogue-namespace", w.catalogue,
			"--standalone", "--kkp-version=2.31.0", "--leader-elect=false", "--store-folder", filepath.Join(folder, "store"),
			"--metrics-bind-address=0", "--health-probe-bind-address=0",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.manager = process
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the end of the log of the master manager:\n%s", fleet.Tail(told, 20))
		}
	})
}
