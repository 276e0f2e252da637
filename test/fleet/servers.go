package fleet

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/test/binaries"
)

const serviceRange, serviceAddress = "10.96.0.0/16", "10.96.0.1"

func (f *Fleet) startEtcd(ctx context.Context) error {
	return WithPort(ctx, func(ctx context.Context, port int) error {
		peer, err := FreePort()
		if err != nil {
			return err
		}
		f.etcdURL = "http://" + address(port)
		process, err := f.run("etcd", "", "etcd",
			"--data-dir", filepath.Join(f.folder.path, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
			"--quota-backend-bytes", strconv.FormatInt(f.etcdQuota, 10),
			"--listen-client-urls", f.etcdURL, "--advertise-client-urls", f.etcdURL,
			"--listen-peer-urls", "http://"+address(peer), "--initial-advertise-peer-urls", "http://"+address(peer),
			"--initial-cluster", "default=http://"+address(peer))
		if err != nil {
			return err
		}
		client, err := rest.HTTPClientFor(&rest.Config{Host: f.etcdURL})
		if err != nil {
			return err
		}
		return process.Await(ctx, "etcd to be healthy", func(ctx context.Context) error {
			return get(ctx, client, f.etcdURL+"/health")
		})
	})
}

// writeKeys writes the keys that an API server needs to serve and to authenticate its administrator.
func (c *Cluster) writeKeys() error {
	certificate, key, err := c.fleet.authority.Serving(c.Name, []net.IP{net.ParseIP(serviceAddress)},
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	private, err := newKey()
	if err != nil {
		return err
	}
	accounts, err := encodeKey(private)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return fmt.Errorf("encoding the key of service accounts: %w", err)
	}
	policy, err := auditPolicy(c.options.Audit)
	if err != nil {
		return err
	}
	return writeFiles(c.folder, map[string][]byte{
		"audit.yaml": policy,
		"ca.crt":     c.fleet.authority.PEM, "tls.crt": certificate, "tls.key": key,
		"accounts.key": accounts, "accounts.pub": encode("PUBLIC KEY", public),
		"tokens.csv": c.tokens(),
	})
}

// tokens are those of the administrator and of the further users, as an API server reads them.
func (c *Cluster) tokens() []byte {
	lines := fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.token)
	for user, token := range c.options.Tokens {
		lines = fmt.Appendf(lines, "%s,%s,%s\n", token, user, user)
	}
	return lines
}

// StartServer starts the API server, the first time or after StopServer, and waits until it is ready.
func (c *Cluster) StartServer(ctx context.Context) error {
	process, err := c.fleet.run("kube-apiserver", c.Release, c.Name+"-kube-apiserver", c.serverArguments()...)
	if err != nil {
		return err
	}
	c.serve(process)
	client, err := rest.HTTPClientFor(&rest.Config{
		BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAData: c.fleet.authority.PEM},
	})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer client.CloseIdleConnections()
	return process.Await(ctx, "the API server to be ready", func(ctx context.Context) error {
		if err := get(ctx, client, c.URL()+"/readyz"); err != nil {
			return err
		}
		return get(ctx, client, c.URL()+"/api/v1/namespaces/default")
	})
}

// StopServer kills the API server: from now on the cluster is unreachable, also if processes are kept running.
func (c *Cluster) StopServer() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server.Kill()
}

// Become restarts the API server in another release, with its data, port and keys, and waits until it is ready. It
// upgrades nothing else of the cluster. Release changes: nothing may read it at the same time.
func (c *Cluster) Become(ctx context.Context, release string) error {
	if _, err := binaries.Find(c.fleet.cache, "kube-apiserver", release); err != nil {
		return err // before the server is stopped
	}
	c.StopServer()
	c.Release = release
	return c.StartServer(ctx)
}

// Server is the process of the API server at this moment.
func (c *Cluster) Server() *Process {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.server
}

func (c *Cluster) serverArguments() []string {
	arguments := []string{
		"--etcd-servers", c.fleet.etcdURL, "--etcd-prefix", c.storedUnder(),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", strconv.Itoa(c.port),
		"--tls-cert-file", c.file("tls.crt"), "--tls-private-key-file", c.file("tls.key"),
		"--token-auth-file", c.file("tokens.csv"), "--authorization-mode", "RBAC", "--anonymous-auth=false",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.file("accounts.pub"), "--service-account-signing-key-file", c.file("accounts.key"),
		"--service-cluster-ip-range", serviceRange, "--allow-privileged=true", "--endpoint-reconciler-type", "none",
		"--profiling=false", "--shutdown-delay-duration=0s",
	}
	if !c.options.FreeOwners {
		arguments = append(arguments, "--enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	}
	if c.options.Certificates {
		arguments = append(arguments, "--client-ca-file", c.file(clientAuthorityCertificate))
	}
	if len(c.options.Audit) > 0 {
		arguments = append(arguments, "--audit-policy-file", c.file("audit.yaml"), "--audit-log-path", c.AuditLog())
	}
	if !c.options.Controllers {
		// It would refuse every Pod until a controller has created the service accounts.
		arguments = append(arguments, "--disable-admission-plugins", "ServiceAccount")
	}
	return arguments
}

// storedUnder is the prefix of the keys of all objects of the API server.
func (c *Cluster) storedUnder() string { return c.fleet.prefix + "/" + c.Name }

func (c *Cluster) file(name string) string { return filepath.Join(c.folder, name) }
