package cluster

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/target"
)

// answersAtOnce is the memory for answers of all user clusters at a time, in bytes.
const answersAtOnce = 384 << 20

// Connections owns the connections to all user clusters of a seed. Start runs it; until then Get answers "not connected".
type Connections struct {
	// Fence keeps what writes from going out once the process leads no more; nil: there is none. It is set before Start.
	Fence remote.Fence

	reader client.Reader
	pace   pace
	budget *remote.Budget
	// identities may be nil (KeepIdentities).
	identities *Identities
	// swapped hears of clusters that turn out to be others (OnSwap).
	swapped func(target.Ref)

	mutex sync.Mutex
	// life is the context of Start; nil before.
	life    context.Context
	running sync.WaitGroup
	// keepers by Ref without UID, so that a Cluster which comes back under its name takes the place of the former one.
	keepers map[target.Ref]*keeper
}

// NewConnections reads kubeconfig Secrets by a reader, which must see past caches.
func NewConnections(reader client.Reader) *Connections {
	return &Connections{
		reader: reader, keepers: map[target.Ref]*keeper{}, budget: remote.NewBudget(answersAtOnce),
		pace: pace{first: time.Second, most: 5 * time.Minute, refresh: 10 * time.Minute, rest: 15 * time.Second},
	}
}

// KeepIdentities has every user cluster compared with the one on record before it is connected to; call it before Start. Without
// it, every user cluster is taken for the Cluster's own.
func (c *Connections) KeepIdentities(identities *Identities) { c.identities = identities }

// OnSwap has told of which Cluster the user cluster turned out to be another, or another Cluster's. Those who
// are connected need not have asked. The function must only enqueue. Call it before the first Get.
func (c *Connections) OnSwap(swapped func(target.Ref)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.swapped = swapped
}

// Origin is the UID that the IDs of a Cluster's installations derive from, as far as it is known before the Cluster is connected
// to: a Connection has the right one.
func (c *Connections) Origin(ctx context.Context, cluster target.Ref) (types.UID, error) {
	if c.identities == nil {
		return cluster.UID, nil
	}
	return c.identities.Origin(ctx, cluster)
}

// Start connects until the context ends, and closes every connection then. It is a manager.Runnable.
func (c *Connections) Start(ctx context.Context) error {
	c.mutex.Lock()
	c.life = ctx
	for _, k := range c.keepers {
		c.launch(k)
	}
	c.mutex.Unlock()
	<-ctx.Done()
	c.running.Wait()
	return nil
}

// launch needs the mutex. After the end nothing is started any more.
func (c *Connections) launch(k *keeper) {
	if c.life == nil || c.life.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.life)
	k.cancel = cancel
	c.running.Go(func() { k.run(ctx) })
}

// Get returns the live connection to a cluster, or a NotConnectedError, at once, and connects in the background. While
// not connected, wake is kept under the subscriber's name (one per name; the installation's is a good one) and called
// once, when the answer changes: it must only enqueue. A Cluster that is not ready by its own status is not called at
// all, and its own watch tells when that changes.
func (c *Connections) Get(cluster target.Description, subscriber string, wake func()) (*Connection, error) {
	if problem := NotReady(cluster); problem != nil {
		if k := c.existing(cluster.Ref); k != nil {
			return nil, k.instead(problem)
		}
		return nil, problem
	}
	return c.keeper(cluster.Ref).answer(subscriber, wake, cluster)
}

// keeper is the one of the cluster; that of a former Cluster of the name ends.
func (c *Connections) keeper(cluster target.Ref) *keeper {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k, found := c.keepers[anyOf(cluster)]
	if found && k.cluster == cluster {
		return k
	}
	if found {
		k.cancel()
	}
	k = c.newKeeper(cluster)
	c.keepers[anyOf(cluster)] = k
	c.launch(k)
	return k
}

// anyOf is a cluster of that name, of whatever UID.
func anyOf(cluster target.Ref) target.Ref {
	cluster.UID = ""
	return cluster
}

func (c *Connections) existing(cluster target.Ref) *keeper {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if k, found := c.keepers[anyOf(cluster)]; found && k.cluster == cluster {
		return k
	}
	return nil
}

// Report tells about a failed call to a cluster. A failure of the transport takes the connection out until a probe gets
// an answer; 401 has the kubeconfig read again; every other answer, and nil, mean nothing.
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

// Refresh has the kubeconfig Secrets of the clusters that a Ref means read again; call it when one of them changes.
func (c *Connections) Refresh(changed target.Ref) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, k := range c.keepers {
		if changed.Matches(k.cluster) {
			k.nudge()
		}
	}
}

// Forget closes the connection to a Cluster that goes.
func (c *Connections) Forget(cluster target.Ref) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if k, found := c.keepers[anyOf(cluster)]; found && k.cluster == cluster {
		k.cancel()
		delete(c.keepers, anyOf(cluster))
	}
	if c.identities != nil {
		c.identities.forget(identityName(cluster))
	}
}
