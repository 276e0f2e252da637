package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

// Manager is one of the product's managers, as the container of its chart's pod, or the web view. When it ends by itself it is started
// again, as a kubelet would.
type Manager struct {
	// Name is that of the control plane and "controller-manager".
	Name string

	// cluster is the control plane that it works for.
	cluster   string
	sandbox   *Sandbox
	container pod.Container
	// run starts the container with what comes after its own arguments.
	run func(ctx context.Context, arguments []string) (*fleet.Process, error)
	// serving are the arguments that say where it serves probes and metrics, and ready is the path that says that it works.
	serving func(probes, metrics string) []string
	ready   string
	// memory is the limit of its data in bytes, as a container's; 0 for none.
	memory  uint64
	mutex   sync.Mutex
	process *fleet.Process
	metrics string
	// metricsPort is where it tells its metrics; 0: wherever a port is free.
	metricsPort int
	stopped     chan struct{}
	watched     sync.WaitGroup
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
	if s.replicated {
		for cluster := range s.managers {
			if _, err := s.addStandby(cluster); err != nil {
				return err
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for cluster := range s.managers {
		group.Go(func() error { return s.startReplicas(ctx, cluster) })
	}
	return group.Wait()
}

// startReplicas starts the managers of a control plane, the second once the first is ready.
func (s *Sandbox) startReplicas(ctx context.Context, cluster string) error {
	for number, replica := range s.Replicas(cluster) {
		if err := replica.Start(ctx); err != nil {
			return err
		}
		if number == 0 {
			s.progress.Printf("%s runs", replica.Name)
		} else {
			s.progress.Printf("%s has a second replica, which waits", s.managers[cluster].Name)
		}
	}
	return nil
}

// addManager has a manager run as its chart's pod. What says where it serves is replaced: it shares this machine's addresses.
func (s *Sandbox) addManager(ctx context.Context, cluster, program string, arguments ...string) error {
	if err := errors.Join(s.awaitRights(ctx, cluster, chartOf(cluster)), s.awaitAuthority(ctx, cluster)); err != nil {
		return err
	}
	made := s.newManager(cluster, pod.Container{
		Name: cluster + "-controller-manager", Namespace: Namespace, Spec: s.deployed[cluster], Program: s.path("bin", program),
		Arguments: slices.Concat([]string{"--metrics-secure=false"}, arguments, s.admissionFlags(cluster)), Environment: s.environments[cluster],
	})
	made.metricsPort = s.metricsPorts[cluster]
	s.managers[cluster] = made
	return nil
}

func (s *Sandbox) newManager(cluster string, container pod.Container) *Manager {
	made := &Manager{Name: container.Name, cluster: cluster, sandbox: s, container: container, ready: "/readyz", serving: servingManager}
	if s.limited {
		made.memory = uint64(container.Spec.Containers[0].Resources.Limits.Memory().Value())
	}
	made.run = func(ctx context.Context, arguments []string) (*fleet.Process, error) {
		started := container
		started.Arguments = slices.Concat(container.Arguments, arguments)
		return s.node(cluster).Run(ctx, started)
	}
	return made
}

// servingManager are the arguments of the product's managers that say where they serve probes and metrics.
func servingManager(probes, metrics string) []string {
	return []string{"--health-probe-bind-address", probes, "--metrics-bind-address", metrics}
}

// node is where the pods of a control plane run.
func (s *Sandbox) node(cluster string) *pod.Node {
	return &pod.Node{
		Fleet: s.Fleet, Cluster: s.Server(cluster), Client: s.Client(cluster), Folder: s.path("pods"),
		Enter: s.path("bin", pod.Enter), Open: s.refused != nil,
	}
}

// Manager is the one of the master or of a seed.
func (s *Sandbox) Manager(cluster string) *Manager { return s.managers[cluster] }

// Start starts the manager, waits until it is ready and keeps it running until Stop.
func (m *Manager) Start(ctx context.Context) error {
	if err := m.launch(ctx); err != nil {
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
func (m *Manager) launch(ctx context.Context) error {
	return fleet.WithPort(ctx, func(ctx context.Context, port int) error {
		free, err := m.metricsPort, error(nil)
		if free == 0 {
			free, err = fleet.FreePort()
		}
		if err != nil {
			return err
		}
		metrics := fmt.Sprintf("127.0.0.1:%d", free)
		probe := fmt.Sprintf("127.0.0.1:%d", port)
		flags, err := m.sandbox.flags(m.cluster)
		if err != nil {
			return err
		}
		process, err := m.run(ctx, slices.Concat(flags, m.serving(probe, metrics)))
		if err != nil {
			return err
		}
		if err := errors.Join(m.limit(process), m.note(process)); err != nil {
			process.Kill()
			return err
		}
		m.mutex.Lock()
		m.process, m.metrics = process, "http://"+metrics+"/metrics"
		m.mutex.Unlock()
		return process.Await(ctx, "the manager to be ready", func(ctx context.Context) error {
			_, err := fleet.Get(ctx, "http://"+probe+m.ready)
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

// note keeps the process id beside the volumes, for whoever wants to stop or to kill the manager by hand.
func (m *Manager) note(process *fleet.Process) error {
	path := filepath.Join(m.kept(), "pid")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(process.PID())+"\n"), 0o600)
}

// kept is what a node keeps of the manager's container.
func (m *Manager) kept() string { return (&pod.Node{Folder: m.sandbox.path("pods")}).Kept(m.Name) }

// Store is the folder in which the manager keeps content, on this machine.
func (m *Manager) Store() string { return filepath.Join(m.kept(), "store") }

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
