package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/trellis-addons/trellis/pkg/base/addresses"
)

// Connection is a checked connection for protocols other than http. It ends when it receives too much, nothing for
// too long, or takes too long; Problem returns the reason, as libraries lose errors.
type Connection struct {
	net.Conn
	at      *url.URL
	watch   *watch
	visit   *visit
	left    atomic.Int64
	limit   int64
	tooLong atomic.Bool
}

// Connect dials a URL's host and port. Up to limit bytes may be read. The caller closes it.
func (n *Network) Connect(ctx context.Context, at *url.URL, limit int64) (*Connection, error) {
	visit, err := n.hosts.enter(ctx, at)
	if err != nil {
		return nil, err
	}
	watch := newWatch(ctx, n.options.Timeout, n.options.IdleTimeout)
	span := beginRequest(ctx, http.MethodConnect, at)
	dialled, err := n.dial(watch.ctx, "tcp", net.JoinHostPort(at.Hostname(), port(at)))
	endConnect(span, err)
	if err != nil {
		err = watch.cause(err)
		watch.stop()
		visit.failed(ctx, err)
		visit.leave()
		return nil, unavailable(at, err)
	}
	made := &Connection{Conn: dialled, at: at, watch: watch, visit: visit, limit: limit}
	made.left.Store(limit)
	context.AfterFunc(watch.ctx, func() { _ = dialled.Close() })
	return made, nil
}

func (c *Connection) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	c.watch.alive()
	if c.left.Add(-int64(count)) < 0 {
		c.tooLong.Store(true)
		return 0, c.Problem(err)
	}
	return count, err
}

// Close ends the connection. It may be called more than once.
func (c *Connection) Close() error {
	c.watch.stop()
	err := c.Conn.Close()
	c.visit.leave()
	return err
}

// Problem turns an error into one of package fetch, with the connection's own reason if it has one.
func (c *Connection) Problem(err error) error {
	if c.tooLong.Load() {
		return refused(c.at, "the answer is larger than "+Bytes(c.limit))
	}
	if reason := context.Cause(c.watch.ctx); reason != nil && !errors.Is(reason, context.Canceled) {
		return unavailable(c.at, reason)
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errHungUp
	}
	return unavailable(c.at, err)
}

// Ended reports whether Trellis ended the connection: too much, too slow.
func (c *Connection) Ended() bool {
	reason := context.Cause(c.watch.ctx)
	return c.tooLong.Load() || reason != nil && !errors.Is(reason, context.Canceled)
}

var errHungUp = errors.New("the server closes the connection")

type addressRules struct {
	allowed []netip.Prefix
	cluster []netip.Prefix
}

func (r addressRules) refusal(address netip.Addr) string {
	if !address.IsValid() {
		return "not an address"
	}
	if address.Zone() != "" {
		return "an address with a zone"
	}
	address = address.Unmap()
	if contains(r.allowed, address) {
		return ""
	}
	if contains(r.cluster, address) {
		return "a cluster-internal address"
	}
	if purpose := addresses.PurposeOf(address); purpose != "" {
		return string(purpose)
	}
	if inner, ok := addresses.Embedded(address); ok {
		return r.refusal(inner)
	}
	return ""
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// clusterName reports whether a host name belongs to the cluster's own DNS.
func clusterName(host string) bool {
	host = "." + strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local")
}
