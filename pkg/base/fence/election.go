package fence

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Times of client-go's own connections, which Join replaces.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Election says how one of several replicas becomes the leader.
type Election struct {
	// Lease is how long others wait for a silent leader, Renewal how long a leader tries to renew its lease before it
	// ends, and Retry the wait between two tries.
	Lease, Renewal, Retry time.Duration
}

// Join makes a manager take part in the election of a lease. Clients made from the configuration after that are
// behind the fence; the election's own client is not. The caller adds the fence to the manager.
func (e *Election) Join(config *rest.Config, namespace, lease string, options *manager.Options) (*Fence, error) {
	made := New()
	lock, err := e.lock(config, namespace, lease, made)
	if err != nil {
		return nil, err
	}
	options.LeaderElection = true
	options.LeaderElectionID, options.LeaderElectionNamespace = lease, namespace
	options.LeaderElectionResourceLockInterface = made.Lock(lock)
	options.LeaderElectionReleaseOnCancel = true
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &e.Lease, &e.Renewal, &e.Retry
	config.Wrap(made.Transport)
	config.Dial = made.Dial((&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext)
	return made, nil
}

// lock makes the lease's lock. Its client waits half of the time to renew for one answer, and the fence compares the clocks
// with it.
func (e *Election) lock(config *rest.Config, namespace, lease string, fence *Fence) (resourcelock.Interface, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = max(e.Renewal/2, time.Second)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &comparing{fence: fence, next: next} })
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the election's client: %w", err)
	}
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the election's client: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host's name: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.Events("")})
	made, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, lease, core, leases, resourcelock.ResourceLockConfig{
		Identity: identity, EventRecorder: broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: identity}),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the election's lock: %w", err)
	}
	return made, nil
}
