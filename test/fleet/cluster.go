package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-addons/trellis/test/binaries"
)

// Cluster is one running control plane.
type Cluster struct {
	// Name as given in the options.
	Name string
	// Release of the API server, such as 1.36.3.
	Release string
	// Config reaches the API server as cluster-admin, with a token and without a rate limit. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the same as Config, as a file.
	Kubeconfig []byte

	fleet   *Fleet
	options ClusterOptions
	folder  string
	token   string
	clients *Authority
	port    int
	mutex   sync.Mutex
	server  *Process
}

func (f *Fleet) newCluster(options ClusterOptions) (*Cluster, error) {
	if options.Release == "" {
		options.Release = binaries.Older
	}
	options.Controllers = options.Controllers || options.Workloads || options.Certificates
	c := &Cluster{
		Name: options.Name, Release: options.Release, fleet: f, options: options,
		folder: filepath.Join(f.folder.path, options.Name), token: rand.Text(),
	}
	if err := c.writeKeys(); err != nil {
		return nil, err
	}
	return c, c.writeClientAuthority()
}

// start returns when everything that the options request works.
func (c *Cluster) start(ctx context.Context) error {
	begin := time.Now()
	err := c.fleet.ports.With(ctx, "cluster "+c.Name, func(ctx context.Context, port int) error {
		c.port = port
		return c.StartServer(ctx)
	})
	if err != nil {
		return fmt.Errorf("cluster %q: %w", c.Name, err)
	}
	if err := c.connect(); err != nil {
		return fmt.Errorf("cluster %q: %w", c.Name, err)
	}
	if err := c.startComponents(ctx); err != nil {
		return fmt.Errorf("cluster %q: %w", c.Name, err)
	}
	c.fleet.progress.Printf("cluster %s (Kubernetes %s) is up after %s", c.Name, c.Release, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// connect sets Config and Kubeconfig, once the port is known, and writes the kubeconfig where components read it.
func (c *Cluster) connect() error {
	c.Config = &rest.Config{
		Host: c.URL(), BearerToken: c.token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.fleet.authority.PEM},
	}
	var err error
	if c.Kubeconfig, err = kubeconfig(c.Name, c.Config); err != nil {
		return err
	}
	return writeFiles(c.folder, map[string][]byte{"kubeconfig": c.Kubeconfig})
}

// KubeconfigFor is Kubeconfig with another token.
func (c *Cluster) KubeconfigFor(token string) ([]byte, error) {
	config := rest.CopyConfig(c.Config)
	config.BearerToken = token
	return kubeconfig(c.Name, config)
}

// URL of the API server.
func (c *Cluster) URL() string { return "https://" + address(c.port) }

func kubeconfig(name string, config *rest.Config) ([]byte, error) {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %q: %w", name, err)
	}
	return content, nil
}
