package installing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
)

// profileVariable names a folder that takes CPU profiles of the manager, some seconds each, of each measured phase. It costs some CPU:
// figures are those of a run without. go tool pprof reads several of them together.
const profileVariable = "TRELLIS_PROFILE"

// manager is the seed manager as a process of its own.
type manager struct {
	process *fleet.Process
	metrics string
	// profiles is where the manager gives them; "": none is wanted. end ends those of a phase.
	profiles string
	end      func()
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
	probes, metrics, profiles := freePort(b), freePort(b), ""
	if os.Getenv(profileVariable) != "" {
		debug := freePort(b)
		profiles, flags = "http://"+debug+"/debug/pprof/profile?seconds=5", append(slices.Clone(flags), "--debug-bind-address", debug)
	}
	process, err := w.fleet.Run(fleet.Command{
		Name: "seed-controller-manager", Path: program, Environment: garbageEnvironment(),
		Arguments: append([]string{
			"--kubeconfig", kubeconfig, "--namespace", platformNamespace, "--catalogue-namespace", catalogueNamespace,
			"--leader-elect=false", "--concurrency", "10", "--allow-source-cidrs", "127.0.0.0/8", "--query-bind-address", "0",
			"--store-folder", filepath.Join(folder, "store"), "--health-probe-bind-address", probes, "--metrics-bind-address", metrics,
		}, flags...),
	})
	if err != nil {
		b.Fatal(err)
	}
	w.manager = &manager{process: process, metrics: "http://" + metrics + "/metrics", profiles: profiles}
	b.Cleanup(process.Kill)
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
	if err := binaries.BuildOwn(b.Context(), root, folder, "./cmd/seed-controller-manager"); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(folder, "seed-controller-manager")
}

// garbageEnvironment has the manager collect garbage as the benchmark's own environment says.
func garbageEnvironment() (variables []string) {
	for _, name := range []string{"GOGC", "GODEBUG"} {
		if value := os.Getenv(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables
}

// profile begins to take profiles of the manager, or ends it, where they are wanted.
func (m *manager) profile() {
	switch {
	case m.profiles == "":
		return
	case m.end != nil:
		m.end()
		m.end = nil
		return
	}
	phase, stop := time.Now().Format("150405"), make(chan struct{})
	var taken sync.WaitGroup
	taken.Go(func() {
		for number := 0; ; number++ {
			select {
			case <-stop:
				return
			default:
			}
			profile, err := fleet.Get(context.Background(), m.profiles)
			if err != nil {
				return // the manager was stopped
			}
			path := filepath.Join(os.Getenv(profileVariable), fmt.Sprintf("cpu-%s-%d.pprof", phase, number))
			if err := os.WriteFile(path, profile, 0o600); err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
			}
		}
	})
	m.end = func() { close(stop); taken.Wait() }
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
