package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// Connection is a live connection to a user cluster, safe for concurrent use. After its kubeconfig
// changes, calls fail with a NotConnectedError.
type Connection struct {
	// Config is for calls that the clients below don't cover. Its transport holds the credentials.
	Config *rest.Config
	// Metadata, Dynamic and Mapper are a calls.Target.
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	Mapper   meta.ResettableRESTMapper
	Secrets  corev1client.SecretsGetter
	// KubeVersion is gitVersion of /version, such as "v1.36.3".
	KubeVersion string
	// UserCluster is the UID of its namespace kube-system; empty without Identities.
	UserCluster types.UID
	// Origin is the UID that installation IDs are derived from (Identities.Origin).
	Origin types.UID

	kinds *kinds
	link  *link
}

// APIVersions are the served group versions ("apps/v1") and kinds ("apps/v1/Deployment"), sorted,
// as in Helm's capabilities. They are empty when Mapper was reset and discovery fails.
func (c *Connection) APIVersions() []string {
	now, err := c.kinds.current(context.Background())
	if err != nil {
		return nil
	}
	return slices.Clone(now.versions)
}

// MissingGroups are the listed group versions whose kinds are unknown, for example while the server of an APIService
// is down. Their kinds may exist.
func (c *Connection) MissingGroups() []string {
	now, err := c.kinds.current(context.Background())
	if err != nil {
		return nil
	}
	return slices.Clone(now.missing)
}

// newConnection creates the clients. It makes no call.
func newConnection(l *link) (*Connection, error) {
	c := &Connection{Config: l.remote.Config, link: l}
	finder, err := discovery.NewDiscoveryClientForConfigAndClient(l.remote.Config, l.remote.HTTP)
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client: %w", err)
	}
	c.kinds = &kinds{client: finder.RESTClient()}
	c.Mapper = mapper{c.kinds}
	if c.Metadata, err = l.remote.Metadata(); err != nil {
		return nil, fmt.Errorf("creating the metadata client: %w", err)
	}
	if c.Dynamic, err = l.remote.Dynamic(); err != nil {
		return nil, fmt.Errorf("creating the dynamic client: %w", err)
	}
	if c.Secrets, err = l.remote.Secrets(); err != nil {
		return nil, fmt.Errorf("creating the Secrets client: %w", err)
	}
	return c, nil
}

// greet reads the version and the served kinds, which requires valid credentials. It returns an updated copy of the
// connection.
func (c *Connection) greet(ctx context.Context) (*Connection, error) {
	gitVersion, err := c.version(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.kinds.refresh(ctx); err != nil {
		return nil, err
	}
	now := *c
	now.KubeVersion = gitVersion
	return &now, nil
}

func (c *Connection) version(ctx context.Context) (string, error) {
	raw, err := c.kinds.client.Get().AbsPath("/version").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var info struct{ GitVersion string }
	if err := json.Unmarshal(raw, &info); err != nil || len(info.GitVersion) > 64 {
		return "", &VersionError{}
	}
	if _, err := version.ParseSemantic(info.GitVersion); err != nil {
		return "", &VersionError{}
	}
	return info.GitVersion, nil
}

// VersionError reports that an API server returned an invalid version.
type VersionError struct{}

func (e *VersionError) Error() string { return "path /version of the API server has no valid version" }

// link is the HTTP client of a kubeconfig. While it is blocked, calls except probes fail at once.
type link struct {
	fingerprint [sha256.Size]byte
	remote      *remote.Client
	// blocked is the reason why calls fail at once; nil: they don't.
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

// report passes failures on, except for those of probes: their visit handles them.
func (l *link) report(ctx context.Context, err error) {
	if isProbe(ctx) {
		return
	}
	if remote.IsMisbehaviour(err) || isTransportFailure(&url.Error{Op: "call", URL: "", Err: err}) {
		l.failed(l, err)
	}
}
