package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Manager is one of the product's managers as a process of its own. When it ends by itself it is started again, as a
// kubelet would.
type Manager struct {
	// Name is that of the control plane and "controller-manager".
	Name string

	// cluster is the control plane that it works for.
	cluster     string
	sandbox     *Sandbox
	program     string
	arguments   []string
	environment []string
	// memory is the limit of its data in bytes, as a container's; 0 for none.
	memory  uint64
	mutex   sync.Mutex
	process *fleet.Process
	metrics string
	stopped chan struct{}
	watched sync.WaitGroup
}

// restartAfter is the time between the end of a manager and its next start.
const restartAfter = time.Second

func (s *Sandbox) startManagers(ctx context.Context) error {
	if err := s.addManager(ctx, Master, "master-controller-manager"); err != nil {
		return err
	}
	for _, seed := range s.seeds() {
		err := s.addManager(ctx, seed, "seed-controller-manager", "--query-bind-address", s.queryAddress(seed), "--query-hosts", "127.0.0.1")
		if err != nil {
			return err
		}
	}
	if s.limited {
		if err := s.limitManagers(); err != nil {
			return err
		}
	}
	for _, manager := range s.managers {
		if err := manager.Start(ctx); err != nil {
			return err
		}
		s.progress.Printf("%s runs", manager.Name)
	}
	return nil
}

// addManager has a manager run with its chart's arguments and as its chart's ServiceAccount. What says where it serves and keeps
// things is replaced: it has no pod of its own here.
func (s *Sandbox) addManager(ctx context.Context, cluster, program string, arguments ...string) error {
	kubeconfig, err := s.kubeconfigFor(ctx, cluster, chartOf(cluster))
	if err != nil {
		return err
	}
	path := s.Kubeconfig("manager-" + cluster)
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of the manager of %s: %w", cluster, err)
	}
	if err := s.awaitRights(ctx, cluster, chartOf(cluster)); err != nil {
		return err
	}
	here := []string{"--kubeconfig", path, "--store-folder", s.path("store", cluster), "--metrics-secure=false"}
	s.managers[cluster] = &Manager{
		Name: cluster + "-controller-manager", cluster: cluster, sandbox: s, program: s.path("bin", program),
		arguments:   slices.Concat(s.deployed[cluster], here, arguments, s.admissionFlags(cluster)),
		environment: s.environments[cluster],
	}
	return nil
}

// limitManagers gives each manager the memory that its chart's container has.
func (s *Sandbox) limitManagers() error {
	for cluster, manager := range s.managers {
		limit, err := charts.MemoryLimit(chartOf(cluster))
		if err != nil {
			return err
		}
		manager.memory = limit
		manager.arguments = append(manager.arguments, fmt.Sprintf("--memory-limit=%d", limit))
	}
	return nil
}

// Manager is the one of the master or of a seed.
func (s *Sandbox) Manager(cluster string) *Manager { return s.managers[cluster] }

// Start starts the manager, waits until it is ready and keeps it running until Stop. The first process gets further
// environment variables, as KEY=value; those after it, which follow a crash, do not.
func (m *Manager) Start(ctx context.Context, environment ...string) error {
	if err := m.launch(ctx, environment...); err != nil {
		return fmt.Errorf("starting %s: %w", m.Name, err)
	}
	stopped := make(chan struct{})
	m.mutex.Lock()
	m.stopped = stopped
	m.mutex.Unlock()
	m.watched.Go(func() { m.keep(stopped) })
	return nil
}

// launch starts the process with free ports for probes and metrics.
func (m *Manager) launch(ctx context.Context, environment ...string) error {
	return fleet.WithPort(ctx, func(ctx context.Context, port int) error {
		free, err := fleet.FreePort()
		if err != nil {
			return err
		}
		metrics := fmt.Sprintf("127.0.0.1:%d", free)
		probe := fmt.Sprintf("127.0.0.1:%d", port)
		flags, err := m.sandbox.flags(m.cluster)
		if err != nil {
			return err
		}
		process, err := m.sandbox.Fleet.Run(fleet.Command{
			Name: m.Name, Path: m.program, Environment: slices.Concat(m.environment, environment),
			Arguments: slices.Concat(m.arguments, flags, []string{"--health-probe-bind-address", probe, "--metrics-bind-address", metrics}),
		})
		if err != nil {
			return err
		}
		if err := m.limit(process); err != nil {
			return err
		}
		m.mutex.Lock()
		m.process, m.metrics = process, "http://"+metrics+"/metrics"
		m.mutex.Unlock()
		return process.Await(ctx, "the manager to be ready", func(ctx context.Context) error {
			_, err := fleet.Get(ctx, "http://"+probe+"/readyz")
			return err
		})
	})
}

// limit bounds the memory of a process, and of those that it starts, each for itself.
func (m *Manager) limit(process *fleet.Process) error {
	if m.memory == 0 {
		return nil
	}
	bounds := &unix.Rlimit{Cur: m.memory, Max: m.memory}
	if err := unix.Prlimit(process.PID(), unix.RLIMIT_DATA, bounds, nil); err != nil {
		return fmt.Errorf("limiting the memory of %s: %w", m.Name, err)
	}
	return nil
}

// MetricsURL is where the manager's process of this moment tells its metrics.
func (m *Manager) MetricsURL() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.metrics
}

// keep starts the manager again whenever it ends.
func (m *Manager) keep(stopped chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		select {
		case <-stopped:
			return
		case <-m.current().Done():
		}
		m.sandbox.progress.Printf("%s ended (%v); starting it again", m.Name, m.current().Ended())
		select {
		case <-stopped:
			return
		case <-time.After(restartAfter):
		}
		if err := m.launch(ctx); err != nil && ctx.Err() == nil {
			m.sandbox.progress.Printf("%s does not start again: %v", m.Name, err)
		}
	}
}

func (m *Manager) current() *fleet.Process {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process
}

// Process is the manager's process at this moment.
func (m *Manager) Process() *fleet.Process { return m.current() }

// Stop kills the manager and leaves it so.
func (m *Manager) Stop() {
	m.mutex.Lock()
	stopped := m.stopped
	m.stopped = nil
	m.mutex.Unlock()
	if stopped != nil {
		close(stopped)
		m.watched.Wait()
	}
	if process := m.current(); process != nil {
		process.Kill()
	}
}
