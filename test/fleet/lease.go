package fleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// lent is a cluster of a pool, as its file says.
type lent struct {
	Options    ClusterOptions
	Kubeconfig []byte
	// Etcd is where the cluster is stored, below Prefix.
	Etcd, Prefix string
	// Stored and Served are what the cluster had when it was started.
	Stored stored
	Served []string
}

// lease is the right to use a cluster of a pool alone. The kernel takes it back when the holder dies.
type lease struct {
	lent
	folder string
	lock   *os.File
	config *rest.Config
}

// errNone says that who asks is to start a cluster of its own.
var errNone = errors.New("the pool has no such cluster at this moment")

// lease takes clusters of the pool for what is asked for, and gives what the pool has none for. It waits for no
// other holder: nobody who has a cluster of the pool can wait for one who waits.
func (f *Fleet) lease(ctx context.Context, pool string, asked []ClusterOptions) ([]ClusterOptions, error) {
	if pool == "" {
		return asked, nil
	}
	var own []ClusterOptions
	for _, options := range asked {
		taken, err := takeAny(ctx, pool, options.complete())
		if errors.Is(err, errNone) {
			own = append(own, options)
			continue
		}
		if err == nil {
			f.leases = append(f.leases, taken)
			f.clusters[options.Name], err = f.leased(taken, options)
		}
		if err != nil {
			return nil, fmt.Errorf("leasing cluster %q: %w", options.Name, err)
		}
	}
	return own, nil
}

// takeAny takes a cluster that serves, or has the pool start one.
func takeAny(ctx context.Context, pool string, asked ClusterOptions) (*lease, error) {
	if asked.Own || asked.FreeOwners || len(asked.Audit) > 0 {
		return nil, errNone
	}
	offered, err := os.ReadDir(pool)
	if err != nil {
		return nil, err
	}
	for _, entry := range offered {
		if !entry.IsDir() {
			continue
		}
		if taken, err := take(ctx, filepath.Join(pool, entry.Name()), asked); !errors.Is(err, errNone) {
			return taken, err
		}
	}
	return takeNew(ctx, pool, asked)
}

// take takes the cluster in that folder, if it serves and nobody has it.
func take(ctx context.Context, folder string, asked ClusterOptions) (*lease, error) {
	l := &lease{folder: folder}
	err := l.read()
	if errors.Is(err, fs.ErrNotExist) { // it is being started, for somebody else
		return nil, errNone
	}
	if err != nil {
		return nil, err
	}
	if !l.Options.serves(asked) {
		return nil, errNone
	}
	if l.lock, err = tryLock(l.file(clusterLock)); err != nil {
		return nil, errors.Join(errNone, err) // somebody has it
	}
	if err := l.begin(ctx); err != nil {
		l.drop()
		return nil, err
	}
	return l, nil
}

// takeNew takes a cluster that the pool starts.
func takeNew(ctx context.Context, pool string, asked ClusterOptions) (*lease, error) {
	name := "cluster-" + strings.ToLower(rand.Text()[:8])
	l := &lease{folder: filepath.Join(pool, name)}
	if err := os.Mkdir(l.folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if l.lock, err = tryLock(l.file(clusterLock)); err != nil {
		return nil, err
	}
	if err = askToStart(ctx, pool, wanted{Folder: name, Options: asked}); err == nil {
		err = l.read()
	}
	if err != nil { // there is none
		_ = os.RemoveAll(l.folder)
	} else if err = l.begin(ctx); err == nil {
		return l, nil
	}
	l.drop()
	return nil, err
}

// askToStart returns once the pool has started the cluster. A pool that is full has none.
func askToStart(ctx context.Context, pool string, asked wanted) error {
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(pool, poolSocket))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://pool/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("asking the pool for a cluster: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("asking the pool for a cluster: %w", err)
	case response.StatusCode == http.StatusOK:
		return nil
	case response.StatusCode == http.StatusServiceUnavailable:
		return errNone
	}
	return fmt.Errorf("the pool does not start a cluster: %s", answer)
}

// read reads what the pool wrote down of the cluster.
func (l *lease) read() error {
	content, err := os.ReadFile(l.file(clusterFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &l.lent); err != nil {
		return fmt.Errorf("reading what cluster %q of the pool is: %w", filepath.Base(l.folder), err)
	}
	return nil
}

// serves says whether a cluster with these options is one for who asks for others. Controllers change what becomes
// of objects, so nobody gets them unasked. An authority for certificates changes nothing for who makes no requests
// for them.
func (o ClusterOptions) serves(asked ClusterOptions) bool {
	return o.Release == asked.Release && o.Controllers == asked.Controllers && o.Workloads == asked.Workloads &&
		(o.Certificates || !asked.Certificates)
}

// begin notes who uses the cluster, if it can be used. What the holder before left, as one that was killed does, is
// removed.
func (l *lease) begin(ctx context.Context) error {
	if _, err := os.Stat(l.file(clusterUnusable)); err == nil {
		return errNone
	}
	var err error
	if l.config, err = clientcmd.RESTConfigFromKubeConfig(l.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %q of the pool: %w", l.Options.Name, err)
	}
	l.config.QPS = -1
	client, err := rest.HTTPClientFor(l.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	if err := get(ctx, client, l.config.Host+"/readyz"); err != nil { // it may be in another network
		return errors.Join(errNone, err)
	}
	if former, err := os.ReadFile(l.file(clusterHolder)); err == nil {
		if err := l.tidy(ctx, string(former)); err != nil {
			fmt.Fprintln(os.Stderr, err) // that is not this package's fault
			return errNone
		}
	}
	holder := fmt.Sprintf("%s, process %d", filepath.Base(os.Args[0]), os.Getpid())
	return writeFiles(l.folder, map[string][]byte{clusterHolder: []byte(holder)})
}

// giveBack ends the lease with a cluster that is as it was. The error says what can't be removed from it.
func (l *lease) giveBack() error {
	err := l.tidy(context.Background(), "this package")
	l.drop()
	return err
}

// tidy has the cluster be as it was before the holder, or lent no more.
func (l *lease) tidy(ctx context.Context, holder string) error {
	err := l.restore(ctx)
	if err == nil {
		return os.Remove(l.file(clusterHolder))
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("%s left something in cluster %q of the pool that can't be removed: %w", holder, l.Options.Name, err)
		err = errors.Join(err, writeFiles(l.folder, map[string][]byte{clusterUnusable: []byte(err.Error())}))
	}
	return err
}

// drop ends the lease with whatever is in the cluster. It may be called more than once.
func (l *lease) drop() { _ = l.lock.Close() }

func (l *lease) file(name string) string { return filepath.Join(l.folder, name) }

// leased is a cluster of the fleet that is a pool's.
func (f *Fleet) leased(l *lease, options ClusterOptions) (*Cluster, error) {
	c := &Cluster{
		Name: options.Name, Release: l.Options.Release, fleet: f, options: options.complete(), leased: true,
		folder: filepath.Join(f.folder.path, options.Name), token: l.config.BearerToken,
	}
	host, err := url.Parse(l.config.Host)
	if err != nil {
		return nil, err
	}
	if c.port, err = strconv.Atoi(host.Port()); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	f.progress.Printf("cluster %s (Kubernetes %s) is leased", c.Name, c.Release)
	return c, nil
}

// description waits until nothing in a new cluster changes by itself any more, and gives what its file says.
func description(ctx context.Context, c *Cluster) ([]byte, error) {
	if err := c.awaitSettled(ctx); err != nil {
		return nil, err
	}
	one := lent{Options: c.options, Kubeconfig: c.Kubeconfig, Etcd: c.fleet.etcdURL, Prefix: c.storedUnder()}
	var err error
	if one.Served, err = servedBy(c.Config); err != nil {
		return nil, err
	}
	if one.Stored, err = one.readAll(ctx); err != nil {
		return nil, err
	}
	return json.Marshal(one)
}
