package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Options of Cluster API's manager.
type Options struct {
	// WithoutRuntimeSDK leaves the feature gate RuntimeSDK off, as it is by default upstream.
	WithoutRuntimeSDK bool
}

// Manager is Cluster API's core manager, a process of a fleet.
type Manager struct {
	// Process ends with the fleet. Once it is killed, Cluster API's webhooks refuse every write of its objects, until it is started again.
	Process *fleet.Process
	// Took is how long it took until CRDs were there and Clusters were admitted.
	Took time.Duration
}

// ForTest starts Cluster API beside one of the fleet's API servers, which gets its CRDs and those of the stand-in for providers.
// Started again after Process.Kill, it takes the place of the one before, possibly with other options.
func ForTest(t testing.TB, f *fleet.Fleet, management *fleet.Cluster, options Options) *Manager {
	t.Helper()
	manager, err := Start(t.Context(), f, management, options)
	if err != nil {
		t.Fatalf("starting Cluster API: %v", err)
	}
	t.Cleanup(manager.Process.Kill)
	return manager
}

// Start is ForTest where there is no test: the manager runs until the fleet ends, or Process.Kill.
func Start(ctx context.Context, f *fleet.Fleet, management *fleet.Cluster, options Options) (*Manager, error) {
	path, err := managerPath()
	if err != nil {
		return nil, err
	}
	c, err := client.New(management.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a client of cluster %q: %w", management.Name, err)
	}
	m, begin := &Manager{}, time.Now()
	err = fleet.WithPort(ctx, func(ctx context.Context, port int) error {
		if err := install(ctx, f, management, port); err != nil {
			return err
		}
		if err := m.run(ctx, f, management, command{path: path, port: port, options: options}); err != nil {
			return err
		}
		return m.serve(ctx, c, path, port, f.Authority().PEM)
	})
	m.Took = time.Since(begin)
	return m, err
}

// serve has the API server ask the manager, and returns once it does: who creates a Cluster earlier has one without defaults.
func (m *Manager) serve(ctx context.Context, c client.Client, path string, port int, authority []byte) error {
	if err := admitAt(ctx, c, path, loopback(port), authority); err != nil {
		return err
	}
	return m.Process.Await(ctx, "Cluster API to admit Clusters", func(ctx context.Context) error {
		probe := Cluster{Namespace: "default", Name: "probe", Class: "none", Version: "none"}.Object()
		err := c.Create(ctx, probe, client.DryRunAll)
		if apierrors.IsInvalid(err) {
			return nil
		}
		return fmt.Errorf("a Cluster of version \"none\": %w", errors.Join(errWaiting, err))
	})
}

// install puts the CRDs there before the manager starts, which does not without them.
func install(ctx context.Context, f *fleet.Fleet, management *fleet.Cluster, port int) error {
	crds, err := definitions()
	if err != nil {
		return err
	}
	convertAt(crds, loopback(port), f.Authority().PEM)
	return fleet.InstallDefinitions(ctx, management.Config, append(crds, providerCRDs()...)...)
}

// command is what the manager is started with.
type command struct {
	path    string
	port    int
	options Options
}

func (m *Manager) run(ctx context.Context, f *fleet.Fleet, management *fleet.Cluster, c command) error {
	name := management.Name + "-" + program
	folder := filepath.Join(f.Folder(), name)
	if err := writeKeys(f, management, folder); err != nil {
		return err
	}
	path := filepath.Join(folder, "manager") // its name in its image, by which it is known as the manager of fields
	if err := os.Symlink(c.path, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("linking Cluster API: %w", err)
	}
	health, err := fleet.FreePort()
	if err != nil {
		return err
	}
	probes := "127.0.0.1:" + strconv.Itoa(health)
	m.Process, err = f.Run(fleet.Command{Name: name, Path: path, Arguments: []string{
		"--kubeconfig", filepath.Join(folder, "kubeconfig"),
		"--feature-gates", fmt.Sprintf("ClusterTopology=true,RuntimeSDK=%t", !c.options.WithoutRuntimeSDK),
		"--webhook-port", strconv.Itoa(c.port), "--webhook-cert-dir", folder,
		"--health-addr", probes, "--diagnostics-address", "0", "--leader-elect=false",
	}})
	if err != nil {
		return err
	}
	return m.Process.Await(ctx, "Cluster API to be ready", func(ctx context.Context) error {
		_, err := fleet.Get(ctx, "http://"+probes+"/readyz")
		return err
	})
}

// writeKeys writes what the manager serves its webhooks with, and what it reaches the API server by.
func writeKeys(f *fleet.Fleet, management *fleet.Cluster, folder string) error {
	certificate, key, err := f.Authority().Serving(program, nil)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of Cluster API: %w", err)
	}
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "kubeconfig": management.Kubeconfig}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing %q for Cluster API: %w", name, err)
		}
	}
	return nil
}
