package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	fleet.Main(m,
		fleet.ClusterOptions{Name: "seed"},
		fleet.ClusterOptions{Name: "user", Release: binaries.Older}, // tests kill it
		fleet.ClusterOptions{Name: "other", Release: binaries.Newer},
	)
}

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	expect.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), kkpv1.AddToScheme(scheme), v1.AddToScheme(scheme)))
	return scheme
}

func directClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: testScheme(t)})
	expect.NoError(t, err)
	return c
}

// place is a cluster namespace on the real seed, with a Cluster object whose own status is ready.
type place struct {
	t    *testing.T
	seed client.Client
	kkp  *kkpv1.Cluster
}

func newPlace(t *testing.T, name string) *place {
	t.Helper()
	p := &place{t: t, seed: directClient(t, fleet.Shared().Cluster("seed").Config)}
	p.kkp = &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")}}
	p.kkp.Status.NamespaceName = "cluster-" + name
	p.kkp.Status.Versions.ControlPlane = binaries.Older
	p.kkp.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.kkp.Status.NamespaceName}}
	expect.Create(t, p.seed, namespace)
	return p
}

// keep writes a kubeconfig Secret of this name.
func (p *place) keep(name string, kubeconfig []byte) {
	p.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.kkp.Status.NamespaceName, Name: name}}
	expect.Put(p.t, p.seed, secret, func(secret *corev1.Secret) { secret.Data = map[string][]byte{KubeconfigKey: kubeconfig} })
}

// connections runs Connections until the test ends, with waits short enough for tests.
func (p *place) connections() *Connections {
	p.t.Helper()
	c := NewConnections(p.seed)
	c.pace = pace{first: 50 * time.Millisecond, most: 200 * time.Millisecond, refresh: time.Hour, rest: 100 * time.Millisecond}
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	return c
}

// live waits for a connection.
func (p *place) live(c *Connections) *Connection {
	p.t.Helper()
	var connection *Connection
	expect.Eventually(p.t, expect.Patience, func() (err error) {
		connection, err = c.Get(Describe(p.kkp), "test", nil)
		return err
	})
	return connection
}

// refused waits for a reason not to be connected.
func (p *place) refused(c *Connections, reason string) *NotConnectedError {
	p.t.Helper()
	var problem *NotConnectedError
	expect.Eventually(p.t, expect.Patience, func() error {
		_, err := c.Get(Describe(p.kkp), "test", nil)
		if err == nil {
			return errors.New("connected")
		}
		if !errors.As(err, &problem) {
			return fmt.Errorf("want a NotConnectedError: %w", err)
		}
		if problem.Reason != reason {
			return fmt.Errorf("got reason %q (%s), want %q", problem.Reason, problem.Message, reason)
		}
		return nil
	})
	return problem
}

// Deadlines of pkg/clusters/remote, which calls to frozen and silent API servers reach.
const (
	tlsTimeout    = 5 * time.Second
	headerTimeout = 10 * time.Second
	idlePing      = 10 * time.Second
	pingTimeout   = 5 * time.Second
)
