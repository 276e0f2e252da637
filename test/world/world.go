// Package world starts the environment of tests of controllers: an API server of the fleet with the kinds that they
// know, and a manager that is assembled like the programs' own.
package world

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/test/fleet"
)

// installing is held while kinds are installed: parallel tests would write the same objects.
var installing sync.Mutex

// Client is that of a test: its rights are not limited, and controllers don't know it. It installs the kinds first.
func Client(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	if err := fleet.InstallCRDs(t.Context(), config, fleet.CRDs(t)...); err != nil {
		t.Fatal(err)
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Namespace is a namespace object to create.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Manager is one that runs no longer than its test.
type Manager struct {
	wiring.Seed
	// Reconciliations counts those of the manager's controllers.
	*Reconciliations
	queues *queues
	t      testing.TB
	ctx    context.Context
	cancel context.CancelFunc
	ended  func() error
}

// Master creates a manager like the program of the master, except for changes of a test.
func Master(t testing.TB, config *rest.Config, change ...func(*manager.Options)) *Manager {
	t.Helper()
	counts := newReconciliations()
	return runnable(t, counts, func(context.Context) (wiring.Seed, error) {
		options := manager.Options{Cache: wiring.Cache(nil, wiring.NewInstallations())}
		made, err := newManager(config, options, slices.Concat(change, []func(*manager.Options){counts.inLogs, guardStatus(t)}))
		return wiring.Seed{Manager: made}, err
	})
}

// Seed creates a manager like the program of a seed, for KKP's Clusters, except for changes of a test.
func Seed(t testing.TB, config *rest.Config, catalogueNamespace string, change ...func(*manager.Options)) *Manager {
	t.Helper()
	return SeedOf(t, config, catalogueNamespace, cluster.OnlyKKP, change...)
}

// SeedOf is Seed for clusters of these kinds.
func SeedOf(
	t testing.TB, config *rest.Config, catalogueNamespace string, kinds cluster.Kinds, change ...func(*manager.Options),
) *Manager {
	t.Helper()
	counts := newReconciliations()
	return runnable(t, counts, func(ctx context.Context) (wiring.Seed, error) {
		return newSeed(ctx, config, catalogueNamespace, kinds, slices.Concat(change, []func(*manager.Options){counts.inLogs, guardStatus(t)}))
	})
}

// NewSeed is Seed for a separate process, which a test started.
func NewSeed(
	ctx context.Context, to *rest.Config, catalogueNamespace string, change ...func(*manager.Options),
) (wiring.Seed, error) {
	return newSeed(ctx, to, catalogueNamespace, cluster.OnlyKKP, change)
}

// NewSeedOf is NewSeed for clusters of these kinds.
func NewSeedOf(
	ctx context.Context, to *rest.Config, catalogueNamespace string, kinds cluster.Kinds, change ...func(*manager.Options),
) (wiring.Seed, error) {
	return newSeed(ctx, to, catalogueNamespace, kinds, change)
}

func newSeed(
	ctx context.Context, to *rest.Config, catalogueNamespace string, kinds cluster.Kinds, change []func(*manager.Options),
) (wiring.Seed, error) {
	held := wiring.NewInstallations()
	made, err := newManager(to, manager.Options{Cache: wiring.Cache(wiring.HeldOnSeeds(catalogueNamespace), held)}, change)
	if err != nil {
		return wiring.Seed{}, err
	}
	return wiring.NewSeed(ctx, made, held, kinds)
}

func newManager(to *rest.Config, options manager.Options, change []func(*manager.Options)) (manager.Manager, error) {
	options.NewClient = loop.NewClient
	options.Scheme, options.Metrics = wiring.Scheme(), metricsserver.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: new(true)} // several of one name, one after the other
	for _, change := range change {
		change(&options)
	}
	if err := heldOnce(options); err != nil {
		return nil, err
	}
	return ctrl.NewManager(to, options)
}

// heldOnce returns an error if a cache's options have two entries of one kind: the effective one would be random.
func heldOnce(options manager.Options) error {
	seen := map[schema.GroupVersionKind]bool{}
	for object := range options.Cache.ByObject {
		kind, err := apiutil.GVKForObject(object, options.Scheme)
		if err != nil {
			return err
		}
		if seen[kind] {
			return fmt.Errorf("the cache is told twice what it holds of %s", kind)
		}
		seen[kind] = true
	}
	return nil
}

// runnable is a manager for a test to run.
func runnable(
	t testing.TB, counts *Reconciliations, create func(context.Context) (wiring.Seed, error),
) *Manager {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // it may end in the test's own cleanup
	t.Cleanup(cancel)
	made, err := create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &Manager{
		Seed: made, Reconciliations: counts, queues: &queues{byName: map[string]queue{}}, t: t, ctx: ctx, cancel: cancel,
	}
}

// Context is that of the manager's life.
func (m *Manager) Context() context.Context { return m.ctx }

// SetUp registers controllers with the manager.
func (m *Manager) SetUp(controllers ...interface{ SetupWithManager(ctrl.Manager) error }) {
	m.t.Helper()
	for _, controller := range controllers {
		if err := controller.SetupWithManager(queueing{m.Manager, m.queues}); err != nil {
			m.t.Fatal(err)
		}
	}
}

// Run starts the manager, until Stop or the end of the test.
func (m *Manager) Run() {
	result := make(chan error, 1)
	go func() { result <- m.Start(m.ctx) }()
	m.ended = sync.OnceValue(func() error { return <-result })
	m.t.Cleanup(m.Stop)
}

// Cancel ends the manager in the middle of its work, and waits for nothing.
func (m *Manager) Cancel() { m.cancel() }

// Wait waits for the manager's end.
func (m *Manager) Wait() {
	if err := m.ended(); err != nil {
		m.t.Error(err)
	}
}

// Stop ends the manager and waits for its end.
func (m *Manager) Stop() {
	m.cancel()
	m.Wait()
}
