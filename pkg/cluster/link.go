package cluster

import (
	"context"
	"crypto/sha256"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/remote"
)

// link is the HTTP client of a kubeconfig. While it is blocked or closed, calls except probes fail
// at once.
type link struct {
	fingerprint [sha256.Size]byte
	remote      *remote.Client
	// blocked is why calls fail at once; nil: they don't.
	blocked atomic.Pointer[NotConnectedError]
	// failed is called with transport failures and misbehaviour.
	failed func(*link, error)
}

func newLink(checked *rest.Config, options remote.Options, failed func(*link, error)) (*link, error) {
	l := &link{failed: failed}
	options.Permit, options.Failed = l.permit, l.report
	client, err := remote.New(checked, options)
	if err != nil {
		return nil, &KubeconfigError{"", "holds certificates that can't be used"}
	}
	l.remote = client
	return l, nil
}

// close makes later calls fail; running calls may finish.
func (l *link) close(cluster, reason, message string) {
	l.blocked.Store(&NotConnectedError{Cluster: cluster, Reason: reason, Message: message})
	l.remote.Close()
}

type probeKey struct{}

// asProbe marks calls that ignore blocked.
func asProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

func isProbe(ctx context.Context) bool { return ctx.Value(probeKey{}) != nil }

// permit is the circuit breaker.
func (l *link) permit(ctx context.Context) error {
	if blocked := l.blocked.Load(); blocked != nil && !isProbe(ctx) {
		return blocked
	}
	return nil
}

// report passes failures on, except those of probes, which their visit handles.
func (l *link) report(ctx context.Context, err error) {
	if isProbe(ctx) {
		return
	}
	if remote.IsMisbehaviour(err) || isTransportFailure(&url.Error{Op: "call", URL: "", Err: err}) {
		l.failed(l, err)
	}
}
