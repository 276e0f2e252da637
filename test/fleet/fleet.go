package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/trellis-addons/trellis/test/binaries"
)

// Options select the parts of a fleet, and its folder.
type Options struct {
	// Folder has keys, data and kubeconfigs of the processes; "" means a new one below the system's temporary folder.
	// It must not have other content: Stop removes it.
	Folder string
	// Logs has one file per process; "" means a folder in Folder. Stop keeps a folder named here.
	Logs string
	// Clusters are started in parallel.
	Clusters []ClusterOptions
	// Progress gets a line per started cluster; nil means none.
	Progress *Progress
	// Keep restarts every process that ends on its own, as a kubelet does: with its state, at its port.
	Keep bool
	// Ports stores the API servers' ports; nil stores nothing.
	Ports *Ports
	// EtcdQuota is the size, in bytes, above which etcd refuses writes; 0 is etcd's default.
	EtcdQuota int64
}

// ClusterOptions describe one control plane.
type ClusterOptions struct {
	// Name is unique in the fleet, a DNS label.
	Name string
	// Release of the API server, controller-manager and scheduler: binaries.Older (also "") or binaries.Newer.
	Release string
	// Controllers starts a kube-controller-manager: namespaces and garbage can be collected, service accounts exist.
	Controllers bool
	// Workloads starts scheduler, workload controllers and a fake node on which pods get ready. It implies Controllers.
	Workloads bool
	// Certificates makes the API server authenticate clients by certificates of the cluster's client authority, and
	// the controller-manager sign approved requests with it, for the signers of Kubernetes, and remove old requests.
	// It implies Controllers.
	Certificates bool
	// Audit makes the API server log each call of these users, without bodies: AuditLog is the file.
	Audit []string
	// Tokens are bearer tokens of further users, by name. The users have no groups, and no rights but those that they are given.
	Tokens map[string]string
	// FreeOwners allows a client that writes an object to name any owner of it, as an API server does by default.
	// Without it, a client needs rights on the owner (admission plugin OwnerReferencesPermissionEnforcement): all
	// that works under this plugin also works with free owners.
	FreeOwners bool
}

// Fleet is a set of running control planes.
type Fleet struct {
	folder    *folder
	logs      string
	cache     string
	progress  *Progress
	starter   *starter
	authority *Authority
	clusters  map[string]*Cluster
	ports     *Ports
	etcdURL   string
	etcdQuota int64
	prefix    string
	stop      sync.Once
	keeping   keeping
}

// Start starts a fleet and returns when every cluster is usable. The context limits only the start: a started fleet
// runs until Stop or the end of the process.
func Start(ctx context.Context, options Options) (*Fleet, error) {
	cache, err := binaries.Cache()
	if err != nil {
		return nil, err
	}
	place, err := claim(options.Folder)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		folder: place, logs: options.Logs, cache: cache, starter: newStarter(),
		progress: options.Progress, clusters: map[string]*Cluster{}, etcdQuota: options.EtcdQuota, ports: options.Ports,
		// No fleet ever reads another's data, not even if one got the port of another's etcd at the wrong moment.
		prefix: "/" + rand.Text(),
	}
	if err := f.start(ctx, options.Clusters); err != nil {
		f.Stop()
		return nil, err
	}
	if options.Keep {
		f.keep()
	}
	return f, nil
}

func (f *Fleet) start(ctx context.Context, clusters []ClusterOptions) error {
	if f.logs == "" {
		f.logs = filepath.Join(f.folder.path, "logs")
	}
	if err := os.MkdirAll(f.logs, 0o700); err != nil {
		return fmt.Errorf("making the folder of logs: %w", err)
	}
	var err error
	if f.authority, err = NewAuthority("trellis-fleet"); err != nil {
		return err
	}
	if err := f.startEtcd(ctx); err != nil {
		return err
	}
	for _, options := range clusters {
		if f.clusters[options.Name] != nil {
			return fmt.Errorf("two clusters are named %q", options.Name)
		}
		if f.clusters[options.Name], err = f.newCluster(options); err != nil {
			return fmt.Errorf("preparing cluster %q: %w", options.Name, err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range f.clusters {
		group.Go(func() error { return cluster.start(ctx) })
	}
	return group.Wait()
}

// Cluster returns the cluster of that name; it panics if the fleet has none, since that is a mistake in the test.
func (f *Fleet) Cluster(name string) *Cluster {
	cluster, found := f.clusters[name]
	if !found {
		panic(fmt.Sprintf("the fleet has no cluster %q", name))
	}
	return cluster
}

// EtcdURL is the address of the etcd below all clusters, for tests of a full etcd.
func (f *Fleet) EtcdURL() string { return f.etcdURL }

// Authority signs every cluster's certificate.
func (f *Fleet) Authority() *Authority { return f.authority }

// Folder is the fleet's folder until Stop.
func (f *Fleet) Folder() string { return f.folder.path }

// Processes are those that run at this moment, the oldest first.
func (f *Fleet) Processes() []*Process { return f.starter.running() }

// Run starts a further program under the fleet's rules: it ends with the owner's death and with Stop.
func (f *Fleet) Run(command Command) (*Process, error) {
	if command.Log == "" {
		command.Log = filepath.Join(f.logs, command.Name+".log")
	}
	if command.Home == "" {
		command.Home = f.folder.path
	}
	return f.starter.start(command)
}

// Stop ends every process and removes the folder. It may be called more than once.
func (f *Fleet) Stop() {
	f.stop.Do(func() {
		f.starter.stop()
		f.keeping.group.Wait()
		f.folder.release()
	})
}

// frugal makes control-plane programs use less processor time, which limits tests: they collect garbage less often,
// and do not look for work on processors that other programs use. An API server uses a quarter less, at start and in
// service.
var frugal = []string{"GOGC=300", "GOMAXPROCS=1"}

// run starts one of the control-plane programs, and keeps it running if Keep is set.
func (f *Fleet) run(program, release, name string, arguments ...string) (*Process, error) {
	path, err := binaries.Find(f.cache, program, release)
	if err != nil {
		return nil, err
	}
	process, err := f.Run(Command{Name: name, Path: path, Arguments: arguments, Environment: frugal})
	if err == nil && f.keeping.on.Load() {
		f.watch(process)
	}
	return process, err
}
