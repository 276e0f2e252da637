package outbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Defaults of Options.
const (
	DefaultTimeout     = 2 * time.Minute
	DefaultIdleTimeout = 15 * time.Second
)

// connectionPools is the maximum number of custom CAs with open connections, idleConnections that of idle ones for
// each.
const (
	connectionPools = 32
	idleConnections = 32
)

// Resolver resolves host names, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options of a Network. The zero value is safe: it allows only public addresses over https.
type Options struct {
	// AllowCIDRs are allowed despite other rules (--allow-source-cidrs).
	AllowCIDRs []netip.Prefix
	// ClusterCIDRs are this cluster's service and pod networks, which have no sources.
	ClusterCIDRs []netip.Prefix
	// AllowInsecure allows plain http (--allow-insecure-sources), for labs.
	AllowInsecure bool
	// Mirrors are for URLs of indexes and redirects; references are replaced before.
	Mirrors fetch.Mirrors
	// Timeout is for a request with its answer, IdleTimeout between bytes. Zero: the defaults.
	Timeout, IdleTimeout time.Duration
	// Resolver is the system's by default.
	Resolver Resolver
}

// Network sends requests by the rules of its options. It is safe for concurrent use.
type Network struct {
	options Options
	rules   addressRules
	hosts   *hosts

	mu    sync.Mutex
	pools map[[sha256.Size]byte]*http.Transport
}

// New creates a Network.
func New(options Options) *Network {
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.IdleTimeout = cmp.Or(options.IdleTimeout, DefaultIdleTimeout)
	if options.Resolver == nil {
		options.Resolver = net.DefaultResolver
	}
	return &Network{
		options: options,
		rules:   addressRules{allowed: options.AllowCIDRs, cluster: options.ClusterCIDRs},
		hosts:   newHosts(),
		pools:   map[[sha256.Size]byte]*http.Transport{},
	}
}

// Close closes idle connections.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, pool := range n.pools {
		pool.CloseIdleConnections()
		delete(n.pools, key)
	}
}

func (n *Network) pool(ca []byte) (*http.Transport, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := sha256.Sum256(ca)
	if pool, ok := n.pools[key]; ok {
		return pool, nil
	}
	roots, err := certificates(ca)
	if err != nil {
		return nil, err
	}
	for old, pool := range n.pools {
		if len(n.pools) < connectionPools {
			break
		}
		pool.CloseIdleConnections()
		delete(n.pools, old)
	}
	n.pools[key] = n.transport(roots)
	return n.pools[key], nil
}

// certificates reads PEM certificates; nil means the system's.
func certificates(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, &fetch.RefusedError{Subject: "the custom certificate authority", Rule: "it holds no PEM certificate"}
	}
	return roots, nil
}

// transport speaks only HTTP/1.1. On an idle HTTP/2 connection a server may send pings without end, each of which is answered.
func (n *Network) transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            n.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    n.options.IdleTimeout,
		ResponseHeaderTimeout:  n.options.IdleTimeout,
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true,
	}
}

// dial resolves the name, checks all addresses, and dials only those, without a second resolution.
func (n *Network) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", hostPort, err)
	}
	addresses, err := n.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: n.options.IdleTimeout, Control: n.control}
	var last error
	for _, address := range addresses {
		connection, err := dialer.DialContext(ctx, network, net.JoinHostPort(address.String(), port))
		if err == nil {
			return connection, nil
		}
		last = err
	}
	return nil, last
}

// lookup returns a host's addresses. One refused address refuses the host.
func (n *Network) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else if addresses, err = n.options.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	for i, address := range addresses {
		if reason := n.hostRefusal(host, address); reason != "" {
			return nil, refusedAddress(host, reason)
		}
		addresses[i] = address.Unmap()
	}
	return addresses, nil
}

func (n *Network) hostRefusal(host string, address netip.Addr) string {
	if reason := n.rules.refusal(address); reason != "" {
		return reason
	}
	if clusterName(host) && !contains(n.rules.allowed, address.Unmap()) {
		return "a cluster-internal name"
	}
	return ""
}

// control checks the address that the kernel is about to connect to.
func (n *Network) control(_, address string, _ syscall.RawConn) error {
	end, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if reason := n.rules.refusal(end.Addr()); reason != "" {
		return refusedAddress(end.Addr().String(), reason)
	}
	return nil
}

// refusedAddress does not print a name's address, which readers of the message may not be allowed to know.
func refusedAddress(host, reason string) error {
	return &fetch.RefusedError{
		Subject: fmt.Sprintf("host %q", host),
		Rule:    reason + " is not allowed for sources, unless the operator adds it to --allow-source-cidrs",
	}
}
