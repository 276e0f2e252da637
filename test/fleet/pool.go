package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// PoolVariable names the environment variable by which test packages find the pool that lends them clusters: its
// value is Pool.Folder.
const PoolVariable = "TRELLIS_FLEET"

// PoolOptions say how a pool is started.
type PoolOptions struct {
	// Folder is as in Options. A path that is the same in each run keeps results of tests cacheable: go test notes
	// TRELLIS_FLEET.
	Folder string
	// Clusters are started with the pool; all others when a package asks for one that no cluster serves at that moment.
	Clusters []ClusterOptions
	// Most is how many clusters the pool has; 0 means poolMost. Who asks for more starts its own.
	Most int
	// Progress takes a line per started cluster; nil means none.
	Progress *Progress
}

const (
	// poolMost is what four packages at a time make use of: about 2 GiB of memory.
	poolMost = 8
	// poolQuota is the room of a pool's etcd in bytes: all packages of a run write to it, and what they removed goes at
	// the next compaction only, minutes later.
	poolQuota = 8 << 30
)

// Pool is a fleet whose clusters are lent to test packages, one package at a time.
type Pool struct {
	fleet  *Fleet
	folder string
	most   int
	// running is the context of the pool's life.
	running context.Context
	cancel  context.CancelFunc
	server  *http.Server
	mutex   sync.Mutex
	// clusters by the names of their folders; nil while it is being started.
	clusters map[string]*Cluster
}

// Files of a pool's folder, and of the folder of each of its clusters in it.
const (
	poolFolder       = "pool"
	poolSocket       = "socket"
	poolAuthority    = "authority.pem"
	poolAuthorityKey = "authority.key"
	clusterFile      = "cluster.json"
	clusterLock      = "lock"
	clusterHolder    = "holder"
	clusterUnusable  = "unusable"
)

// StartPool starts a pool and returns when it can be asked. The context bounds the start only: a started pool runs
// until Stop or the end of the process.
func StartPool(ctx context.Context, options PoolOptions) (*Pool, error) {
	f, err := Start(ctx, Options{Folder: options.Folder, Progress: options.Progress, EtcdQuota: poolQuota})
	if err != nil {
		return nil, err
	}
	p := &Pool{
		fleet: f, folder: filepath.Join(f.Folder(), poolFolder), most: cmp.Or(options.Most, poolMost),
		clusters: map[string]*Cluster{},
	}
	p.running, p.cancel = context.WithCancel(context.Background())
	if err := p.open(ctx, options.Clusters); err != nil {
		p.cancel()
		f.Stop()
		return nil, fmt.Errorf("starting a pool of clusters: %w", err)
	}
	return p, nil
}

func (p *Pool) open(ctx context.Context, clusters []ClusterOptions) error {
	key, err := encodeKey(p.fleet.authority.key)
	if err != nil {
		return err
	}
	files := map[string][]byte{poolAuthority: p.fleet.authority.PEM, poolAuthorityKey: key}
	if err := writeFiles(p.folder, files); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, options := range clusters {
		group.Go(func() error { return p.start(ctx, wanted{Folder: options.Name, Options: options}) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(p.folder, poolSocket))
	if err != nil {
		return err
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: startDeadline}
	go func() { _ = p.server.Serve(listener) }()
	return nil
}

// wanted is a cluster that a package asks a pool to start.
type wanted struct {
	// Folder is the name of the cluster's folder in that of the pool; who asks has its lock.
	Folder  string
	Options ClusterOptions
}

// serve starts a cluster. Who asked may be gone when it is started: it is there for others then.
func (p *Pool) serve(response http.ResponseWriter, request *http.Request) {
	var asked wanted
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	if err := p.start(p.running, asked); errors.Is(err, errPoolFull) {
		http.Error(response, err.Error(), http.StatusServiceUnavailable)
	} else if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
	}
}

var errPoolFull = errors.New("the pool has as many clusters as it may")

// start starts a cluster and writes down what a holder has to know. Where there are controllers, there is an
// authority for certificates too, so that fewer clusters serve all.
func (p *Pool) start(ctx context.Context, asked wanted) error {
	options := asked.Options.complete()
	options.Name, options.Certificates = filepath.Base(asked.Folder), options.Controllers
	if err := p.enter(options.Name); err != nil {
		return err
	}
	cluster, err := p.fleet.newCluster(options)
	if err == nil {
		err = cluster.start(ctx)
	}
	var content []byte
	if err == nil {
		content, err = description(ctx, cluster)
	}
	if err == nil {
		err = writeFiles(filepath.Join(p.folder, options.Name), map[string][]byte{clusterFile: content})
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil {
		delete(p.clusters, options.Name)
		return err
	}
	p.clusters[options.Name] = cluster
	return nil
}

func (p *Pool) enter(name string) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, isThere := p.clusters[name]; isThere {
		return fmt.Errorf("two clusters are named %q", name)
	}
	if len(p.clusters) >= p.most {
		return errPoolFull
	}
	p.clusters[name] = nil
	return nil
}

// Folder is the value of TRELLIS_FLEET for test packages.
func (p *Pool) Folder() string { return p.folder }

// Stop ends the pool. The error names servers that ended before, and clusters in which a package left something that
// can't be removed.
func (p *Pool) Stop() error {
	defer p.fleet.Stop()
	p.cancel()
	_ = p.server.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var failed []error
	for name, cluster := range p.clusters {
		if cluster == nil {
			continue
		}
		failed = append(failed, cluster.Server().Failure())
		why, err := os.ReadFile(filepath.Join(p.folder, name, clusterUnusable))
		if err == nil {
			failed = append(failed, fmt.Errorf("cluster %q of the pool was lent no more: %s", name, why))
		} else if !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// authorityOf is that of the pool, so that all clusters of a fleet have one; or a new one.
func authorityOf(pool string) (*Authority, error) {
	if pool == "" {
		return NewAuthority("trellis-fleet")
	}
	certificate, err := os.ReadFile(filepath.Join(pool, poolAuthority))
	if err != nil {
		return nil, fmt.Errorf("%s names a folder that is no pool's: %w", PoolVariable, err)
	}
	key, err := os.ReadFile(filepath.Join(pool, poolAuthorityKey))
	if err != nil {
		return nil, fmt.Errorf("%s names a folder that is no pool's: %w", PoolVariable, err)
	}
	return readAuthority(certificate, key)
}
