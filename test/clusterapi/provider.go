package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Provider says how the stand-in for providers of control planes and infrastructure behaves.
type Provider struct {
	// Servers become user clusters, each of one Cluster at a time: a new control plane takes the first that is free, and waits for one.
	Servers []*fleet.Cluster
	// ServerOf decides instead, where it is there; several Clusters may have one server. Nil from it: not yet.
	ServerOf func(cluster types.NamespacedName) *fleet.Cluster
	// StatusOnly turns versions in status, and leaves the servers as they are.
	StatusOnly bool
	// Rolling is called while a control plane is at two versions, which stand in status until it returns: a test may look, or wait.
	Rolling func(ctx context.Context, step Step)
}

// Step is one upgrade of a control plane.
type Step struct {
	// Cluster that it is of.
	Cluster types.NamespacedName
	// From and To are versions such as v1.36.3.
	From, To string
}

// Player plays the provider until it is stopped.
type Player struct {
	provider Provider
	client   client.WithWatch
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	group    sync.WaitGroup
	cancel   context.CancelFunc

	mutex sync.Mutex
	// taken are servers, by the control plane that has them.
	taken map[types.NamespacedName]assignment
	// troubles are the last errors, by control plane.
	troubles map[types.NamespacedName]error

	// restarting is held while a server becomes another release.
	restarting sync.Mutex
}

// assignment is a server that the control plane of a Cluster has.
type assignment struct {
	cluster types.NamespacedName
	server  *fleet.Cluster
}

// workers is how many control planes are seen to at the same time; a server that is started anew keeps one of them for seconds.
const workers = 8

// again is the time until a watch that ended is opened anew, and the first one until a control plane in trouble is looked at again.
const again = 100 * time.Millisecond

// Play plays the provider on that cluster until the test ends.
func Play(t testing.TB, management *fleet.Cluster, provider Provider) *Player {
	t.Helper()
	p, err := StartProvider(management, provider)
	if err != nil {
		t.Fatalf("starting the provider: %v", err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("troubles of the provider: %v", p.Troubles())
		}
	})
	return p
}

// StartProvider is Play where there is no test.
func StartProvider(management *fleet.Cluster, provider Provider) (*Player, error) {
	c, err := client.NewWithWatch(management.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a client of cluster %q: %w", management.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](again, 2*time.Second)
	p := &Player{
		provider: provider, client: c, cancel: cancel, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		taken: map[types.NamespacedName]assignment{}, troubles: map[types.NamespacedName]error{},
	}
	p.group.Go(func() { p.watch(ctx) })
	for range workers {
		p.group.Go(func() { p.work(ctx) })
	}
	return p, nil
}

// Stop ends the playing; servers stay as they are.
func (p *Player) Stop() {
	p.cancel()
	p.queue.ShutDown()
	p.group.Wait()
}

// Server is the API server that the control plane of that Cluster has; nil while it has none.
func (p *Player) Server(cluster types.NamespacedName) *fleet.Cluster {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.taken {
		if one.cluster == cluster {
			return one.server
		}
	}
	return nil
}

// take gives the control plane the server that it has, or another one; nil says that there is none now.
func (p *Player) take(plane, cluster types.NamespacedName) *fleet.Cluster {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if before, found := p.taken[plane]; found {
		return before.server
	}
	server := p.choose(cluster)
	if server != nil {
		p.taken[plane] = assignment{cluster: cluster, server: server}
	}
	return server
}

func (p *Player) choose(cluster types.NamespacedName) *fleet.Cluster {
	if p.provider.ServerOf != nil {
		return p.provider.ServerOf(cluster)
	}
	busy := map[*fleet.Cluster]bool{}
	for _, one := range p.taken {
		busy[one.server] = true
	}
	for _, server := range p.provider.Servers {
		if !busy[server] {
			return server
		}
	}
	return nil
}

func (p *Player) free(plane types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.taken, plane)
}

// Troubles are what keeps control planes from getting on.
func (p *Player) Troubles() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var all []error
	for key, err := range p.troubles {
		all = append(all, fmt.Errorf("%s: %w", key, err))
	}
	return errors.Join(all...)
}

// watch queues control planes as they change, also those that are there before.
func (p *Player) watch(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := p.client.Watch(ctx, list(ControlPlaneKind))
		if err == nil {
			p.follow(events)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (p *Player) follow(events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		if changed, ok := event.Object.(client.Object); ok && event.Type != watch.Bookmark && event.Type != watch.Error {
			p.queue.Add(client.ObjectKeyFromObject(changed))
		}
	}
}

func (p *Player) work(ctx context.Context) {
	for {
		key, ended := p.queue.Get()
		if ended {
			return
		}
		err := p.see(ctx, key)
		p.note(key, err)
		if err != nil && ctx.Err() == nil {
			p.queue.AddRateLimited(key)
		}
		if err == nil {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

// errWaiting is no trouble: Cluster API is not yet so far.
var errWaiting = errors.New("waiting for Cluster API")

func (p *Player) note(key types.NamespacedName, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if delete(p.troubles, key); err != nil {
		p.troubles[key] = err
	}
}

// see brings one control plane to what its object says.
func (p *Player) see(ctx context.Context, key types.NamespacedName) error {
	found := object(ControlPlaneKind, key.Namespace, key.Name)
	err := p.client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		p.free(key)
		return nil
	}
	if err != nil || found.GetDeletionTimestamp() != nil {
		return err
	}
	cluster := found.GetLabels()[clusterNameLabel]
	if cluster == "" {
		return nil // Cluster API puts it on, which is a change
	}
	plane := controlPlane{object: found, cluster: types.NamespacedName{Namespace: key.Namespace, Name: cluster}}
	if plane.server = p.take(key, plane.cluster); plane.server == nil {
		return fmt.Errorf("no server is free: %w", errWaiting)
	}
	return p.advance(ctx, plane)
}
