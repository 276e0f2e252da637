package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// visitTimeout bounds one visit: reading the Secret, the version and the served kinds.
const visitTimeout = 20 * time.Second

type pace struct {
	// first and most limit the waits after failures.
	first, most time.Duration
	// refresh is how long discovery counts as current.
	refresh time.Duration
	// rest is the first pause after a cluster misbehaved; it doubles up to most.
	rest time.Duration
}

func (p pace) after(failures int) time.Duration {
	if failures == 0 {
		return wait.Jitter(p.refresh, 0.1)
	}
	return p.doubled(p.first, failures)
}

func (p pace) doubled(pause time.Duration, times int) time.Duration {
	return wait.Jitter(backoff.After(times, pause, p.most), 0.2)
}

// connector maintains the connection to one cluster, in a goroutine of its own.
type connector struct {
	cluster target.Ref
	reader  client.Reader
	pace    pace
	budget  *remote.Budget
	fence   remote.Fence
	allowed []netip.Prefix
	// identities may be nil: then every user cluster is accepted.
	identities *Identities
	// swapped is called when the user cluster turns out to be another; it may be nil.
	swapped func(target.Ref)
	nudges  chan struct{}
	cancel  context.CancelFunc

	mutex sync.Mutex
	// connection exists until the kubeconfig changes; it is live while problem is nil.
	connection *Connection
	problem    *NotConnectedError
	everUp     bool
	// version is the control plane's version according to the Cluster; a change requests a visit.
	version string
	// confirmed is the Cluster's annotation confirm-cluster; a change requests a visit.
	confirmed   string
	subscribers map[string]func()
	offences    offences
}

func (c *Connections) newConnector(cluster target.Ref) *connector {
	k := &connector{
		cluster: cluster, reader: c.reader, pace: c.pace, budget: c.budget, fence: c.Fence, allowed: c.AllowCIDRs,
		identities: c.identities, swapped: c.swapped,
		nudges: make(chan struct{}, 1), subscribers: map[string]func(){}, cancel: func() {},
	}
	k.problem = k.trouble(v1.ReasonClusterNotReady, "connecting to the API server")
	k.problem.Connecting = true
	return k
}

func (k *connector) trouble(reason, message string) *NotConnectedError {
	return &NotConnectedError{Cluster: k.cluster.Name, Reason: reason, Message: message}
}

func (k *connector) nudge() {
	select {
	case k.nudges <- struct{}{}:
	default:
	}
}

// run visits the cluster until the context ends: at the start, after a nudge, and with back-off after failures.
func (k *connector) run(ctx context.Context) {
	defer k.stop()
	for failures := 0; ; {
		link, connection, problem := k.visit(ctx)
		if ctx.Err() != nil {
			return
		}
		if resting := k.restingProblem(); resting != nil { // it misbehaved meanwhile
			problem = resting
		}
		k.publish(link, connection, problem)
		if failures++; problem == nil {
			failures = 0
		}
		if !k.await(ctx, failures) {
			return
		}
	}
}

// visit reads the kubeconfig and greets the API server, over the existing link if possible.
func (k *connector) visit(ctx context.Context) (*link, *Connection, *NotConnectedError) {
	ctx, cancel := context.WithTimeout(asProbe(ctx), visitTimeout)
	defer cancel()
	base, problem := k.base(ctx)
	if problem != nil {
		return nil, nil, problem
	}
	now, err := base.greet(ctx)
	if err != nil {
		return base.link, nil, k.greetingProblem(err)
	}
	if problem := k.recognise(ctx, now); problem != nil {
		return base.link, nil, problem
	}
	return base.link, now, nil
}

func (k *connector) base(ctx context.Context) (*Connection, *NotConnectedError) {
	have := k.known()
	data, err := ReadKubeconfig(ctx, k.reader, k.cluster)
	var none *NoKubeconfigError
	switch {
	case errors.As(err, &none):
		return nil, k.trouble(v1.ReasonKubeconfigInvalid, none.Error())
	case err != nil && have != nil: // the seed's API server is at fault: the connection stays
		return have, nil
	case err != nil:
		return nil, k.trouble(v1.ReasonClusterNotReady, "the kubeconfig can't be read from the seed")
	}
	fingerprint := sha256.Sum256(data)
	if have != nil && have.link.fingerprint == fingerprint {
		return have, nil
	}
	made, err := k.connect(data)
	if err != nil {
		return nil, k.kubeconfigProblem(err)
	}
	made.link.fingerprint = fingerprint
	return made, nil
}

func (k *connector) connect(data []byte) (*Connection, error) {
	config, err := ParseKubeconfig(data)
	if err != nil {
		return nil, err
	}
	options := remote.Options{Budget: k.budget, Fence: k.fence}
	if !k.cluster.IsKKP() { // any user who may write Secrets in its namespace writes its kubeconfig
		options.Addresses = remote.Addresses{OnlyHosts: true, Allowed: k.allowed}
	}
	l, err := newLink(config, options, k.linkFailed)
	if err != nil {
		return nil, err
	}
	return newConnection(l)
}

func (k *connector) kubeconfigProblem(err error) *NotConnectedError {
	problem := "kubeconfig can't be used"
	if refused, ok := errors.AsType[*KubeconfigError](err); ok {
		problem = refused.Error()
	}
	return k.trouble(v1.ReasonKubeconfigInvalid, k.kubeconfigPlace()+problem)
}

func (k *connector) kubeconfigPlace() string {
	if names, _ := kubeconfigsOf(k.cluster); !k.cluster.IsKKP() {
		return fmt.Sprintf("the kubeconfig Secret %q in namespace %q: ", names[0], k.cluster.Namespace)
	}
	return fmt.Sprintf("the kubeconfig Secret in namespace %q: ", k.cluster.Namespace)
}

func (k *connector) greetingProblem(err error) *NotConnectedError {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return k.trouble(v1.ReasonKubeconfigInvalid, k.kubeconfigPlace()+"the API server refuses the kubeconfig's credentials")
	}
	var many *TooManyKindsError
	var version *VersionError
	var misbehaves *remote.MisbehavesError
	var unidentified *UnidentifiedError
	switch {
	case errors.As(err, &misbehaves):
		return k.trouble(v1.ReasonClusterMisbehaves, misbehaves.Error())
	case errors.As(err, &unidentified):
		return k.trouble(unidentified.Reason, unidentified.Problem)
	case errors.As(err, &many):
		return k.trouble(v1.ReasonClusterUnreachable, many.Error())
	case errors.As(err, &version):
		return k.trouble(v1.ReasonClusterUnreachable, version.Error())
	}
	return k.trouble(v1.ReasonClusterUnreachable, DescribeFailure(err))
}

func (k *connector) known() *Connection {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.connection
}
