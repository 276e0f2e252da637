package installing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
)

// profileVariable names a folder that takes CPU profiles of the manager, one for each measured phase. It costs some CPU:
// figures are those of a run without.
const profileVariable = "TRELLIS_PROFILE"

// manager is the seed manager as a process of its own.
type manager struct {
	process *fleet.Process
	metrics string
}

// startManager builds the seed manager as `make build` does, and starts it.
func (w *world) startManager(b *testing.B, flags ...string) {
	b.Helper()
	w.startProgram(b, buildManager(b, b.TempDir()), flags...)
}

// startProgram starts a seed manager.
func (w *world) startProgram(b *testing.B, program string, flags ...string) {
	b.Helper()
	folder := disk.TempDir(b)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, w.both.Kubeconfig, 0o600); err != nil {
		b.Fatal(err)
	}
	probes, metrics := freePort(b), freePort(b)
	process, err := w.fleet.Run(fleet.Command{
		Name: "seed-controller-manager", Path: program, Environment: profileEnvironment(),
		Arguments: append([]string{
			"--kubeconfig", kubeconfig, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace,
			"--leader-elect=false", "--concurrency", "10", "--allow-source-cidrs", "127.0.0.0/8", "--query-bind-address", "0",
			"--store-folder", filepath.Join(folder, "store"), "--health-probe-bind-address", probes, "--metrics-bind-address", metrics,
		}, flags...),
	})
	if err != nil {
		b.Fatal(err)
	}
	w.manager = &manager{process: process, metrics: "http://" + metrics + "/metrics"}
	b.Cleanup(func() {
		_ = process.Signal(syscall.SIGTERM) // lets a profile under way be written
		select {
		case <-process.Done():
		case <-time.After(5 * time.Second):
			process.Kill()
		}
	})
	err = process.Await(b.Context(), "the manager to be ready", func(ctx context.Context) error {
		_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func buildManager(b *testing.B, folder string) string {
	b.Helper()
	root, err := binaries.Root()
	if err != nil {
		b.Fatal(err)
	}
	tags := ""
	if os.Getenv(profileVariable) != "" {
		tags = "profile"
	}
	if err := binaries.BuildOwn(b.Context(), root, folder, "-tags", tags, "./cmd/seed-controller-manager"); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(folder, "seed-controller-manager")
}

// profileEnvironment has the manager take profiles, or collect garbage, as the benchmark's own environment says.
func profileEnvironment() (variables []string) {
	for _, name := range []string{profileVariable, "GOGC", "GODEBUG"} {
		if value := os.Getenv(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// profile begins a profile of the manager, or ends it, where one is wanted.
func (m *manager) profile() {
	if os.Getenv(profileVariable) != "" {
		_ = m.process.Signal(syscall.SIGUSR1)
	}
}

func freePort(b *testing.B) string {
	b.Helper()
	port, err := fleet.FreePort()
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// quiet waits until the manager has used next to nothing for a second.
func (w *world) quiet(b *testing.B) {
	b.Helper()
	AwaitQuiet(b, w.manager.process.PID())
}
