package cluster

import (
	"context"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// answersAtOnce limits the memory for concurrent answers of all user clusters, in bytes.
const answersAtOnce = 384 << 20

// Connections owns the connections to a seed's user clusters. Get fails unless Start runs.
type Connections struct {
	// Fence stops writes once the process no longer leads; nil: no fence. Set it before Start.
	Fence remote.Fence
	// AllowCIDRs are loopback and link-local addresses that kubeconfigs of Cluster API's Clusters may lead to. Set it
	// before Start.
	AllowCIDRs []netip.Prefix

	reader     client.Reader
	pace       pace
	budget     *remote.Budget
	identities *Identities
	swapped    func(target.Ref)

	mutex   sync.Mutex
	life    context.Context
	running sync.WaitGroup
	// connectors by Ref without UID: a new Cluster of the same name replaces the previous one.
	connectors map[target.Ref]*connector
}

// NewConnections creates Connections. The reader of kubeconfig Secrets must bypass caches.
func NewConnections(reader client.Reader) *Connections {
	return &Connections{
		reader: reader, connectors: map[target.Ref]*connector{}, budget: remote.NewBudget(answersAtOnce),
		pace: pace{first: time.Second, most: 5 * time.Minute, refresh: 10 * time.Minute, rest: 15 * time.Second},
	}
}

// UseIdentities makes each connection compare the user cluster with the recorded one. Call it
// before Start. Without it, every user cluster is accepted.
func (c *Connections) UseIdentities(identities *Identities) { c.identities = identities }

// OnSwap sets a callback for Clusters whose kubeconfig leads to another user cluster, or to the one of another
// Cluster. The callback must only enqueue. Call OnSwap before the first Get.
func (c *Connections) OnSwap(swapped func(target.Ref)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.swapped = swapped
}

// Origin is the UID that the IDs of a Cluster's installations are derived from, as known before the Cluster is
// connected. A Connection has the final one.
func (c *Connections) Origin(ctx context.Context, cluster target.Ref) (types.UID, error) {
	if c.identities == nil {
		return cluster.UID, nil
	}
	return c.identities.Origin(ctx, cluster)
}

// Start connects until the context ends, then closes all connections. It is a manager.Runnable.
func (c *Connections) Start(ctx context.Context) error {
	c.mutex.Lock()
	c.life = ctx
	for _, k := range c.connectors {
		c.launch(k)
	}
	c.mutex.Unlock()
	<-ctx.Done()
	c.running.Wait()
	return nil
}

// launch starts a connector, unless Connections has ended. The caller holds the mutex.
func (c *Connections) launch(k *connector) {
	if c.life == nil || c.life.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.life)
	k.cancel = cancel
	c.running.Go(func() { k.run(ctx) })
}

// Get returns at once: the live connection, or a NotConnectedError while it connects in the background. In the second
// case it calls wake once when the answer changes; wake must only enqueue. There is one wake per subscriber, such as
// an installation's name. A Cluster whose own status is not ready is not called; watch it instead.
func (c *Connections) Get(cluster target.Description, subscriber string, wake func()) (*Connection, error) {
	if problem := NotReady(cluster); problem != nil {
		if k := c.existing(cluster.Ref); k != nil {
			return nil, k.instead(problem)
		}
		return nil, problem
	}
	return c.connector(cluster.Ref).answer(subscriber, wake, cluster)
}

// connector returns the cluster's connector, and ends that of a previous Cluster of the name.
func (c *Connections) connector(cluster target.Ref) *connector {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k, found := c.connectors[anyOf(cluster)]
	if found && k.cluster == cluster {
		return k
	}
	if found {
		k.cancel()
	}
	k = c.newConnector(cluster)
	c.connectors[anyOf(cluster)] = k
	c.launch(k)
	return k
}

// anyOf is a cluster of that name, with any UID.
func anyOf(cluster target.Ref) target.Ref {
	cluster.UID = ""
	return cluster
}

func (c *Connections) existing(cluster target.Ref) *connector {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if k, found := c.connectors[anyOf(cluster)]; found && k.cluster == cluster {
		return k
	}
	return nil
}

// Report takes the error of a call to a cluster. A transport failure blocks the connection until a probe succeeds.
// After 401, the connector reads the kubeconfig again. Other errors and nil are ignored.
func (c *Connections) Report(cluster target.Ref, err error) {
	k := c.existing(cluster)
	switch {
	case err == nil || k == nil:
	case apierrors.IsUnauthorized(err):
		k.nudge()
	case remote.IsMisbehaviour(err), isTransportFailure(err):
		k.fail(err)
	}
}

// Refresh reads the kubeconfig Secrets of these clusters again. Call it when one changes.
func (c *Connections) Refresh(changed target.Ref) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, k := range c.connectors {
		if changed.Matches(k.cluster) {
			k.nudge()
		}
	}
}

// Forget closes the connection to a deleted Cluster.
func (c *Connections) Forget(cluster target.Ref) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if k, found := c.connectors[anyOf(cluster)]; found && k.cluster == cluster {
		k.cancel()
		delete(c.connectors, anyOf(cluster))
	}
	if c.identities != nil {
		c.identities.forget(cluster.Key())
	}
}
