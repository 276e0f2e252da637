package cluster

import (
	"context"
	"crypto/sha256"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/remote"
)

// link is the one HTTP client of a kubeconfig. While it is broken or closed, every call but a probe fails at once.
type link struct {
	fingerprint [sha256.Size]byte
	remote      *remote.Client
	// blocked is why calls fail at once; nil when they go out.
	blocked atomic.Pointer[NotConnectedError]
	// failed hears of every transport failure, and of what no API server does.
	failed func(*link, error)
}

// newLink makes a client from a checked kubeconfig, with the budget and the fence of the options.
func newLink(checked *rest.Config, options remote.Options, failed func(*link, error)) (*link, error) {
	l := &link{failed: failed}
	options.Permit, options.Failed = l.permit, l.hear
	client, err := remote.New(checked, options)
	if err != nil {
		return nil, &KubeconfigError{"", "holds certificates that can't be used"}
	}
	l.remote = client
	return l, nil
}

// close makes later calls fail; those under way end as they may, and their connections go with them.
func (l *link) close(cluster, reason, message string) {
	l.blocked.Store(&NotConnectedError{Cluster: cluster, Reason: reason, Message: message})
	l.remote.Close()
}

type probeKey struct{}

// asProbe marks calls that go out although the link is blocked.
func asProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

func isProbe(ctx context.Context) bool { return ctx.Value(probeKey{}) != nil }

// permit is the circuit.
func (l *link) permit(ctx context.Context) error {
	if blocked := l.blocked.Load(); blocked != nil && !isProbe(ctx) {
		return blocked
	}
	return nil
}

// hear passes failures on; those of probes are their visit's to judge.
func (l *link) hear(ctx context.Context, err error) {
	if isProbe(ctx) {
		return
	}
	if remote.IsMisbehaviour(err) || isTransportFailure(&url.Error{Op: "call", URL: "", Err: err}) {
		l.failed(l, err)
	}
}
