package standalone

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	// probeTimeout ends a probe of an API server that accepts connections and does not answer.
	probeTimeout = 10 * time.Second
	// probesAtOnce bounds the connections to dead API servers.
	probesAtOnce = 32
)

type finding struct {
	asked question
	// answers says that an API server answered.
	answers bool
	// version is empty if no API server answered, or that of another user cluster did.
	version string
	at      time.Time
}

// question is the subject of a probe: a finding for another question is out of date.
type question struct {
	cluster target.Ref
	// confirmed is the Cluster's annotation confirm-cluster.
	confirmed string
	// secretVersion is the resourceVersion of the kubeconfig Secret.
	secretVersion string
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// prober asks API servers for their version, concurrently with reconciliations.
type prober struct {
	reader     client.Reader
	identities *cluster.Identities
	interval   time.Duration
	slots      chan struct{}

	mutex    sync.Mutex
	life     context.Context
	queue    queue
	findings map[string]finding
	running  map[string]bool
}

func newProber(reader client.Reader, identities *cluster.Identities, interval time.Duration) *prober {
	return &prober{
		reader: reader, identities: identities, interval: interval, slots: make(chan struct{}, probesAtOnce),
		findings: map[string]finding{}, running: map[string]bool{},
	}
}

// start is a source.Func: it stores the queue to which objects return when a probe ends.
func (p *prober) start(ctx context.Context, queue queue) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.life, p.queue = ctx, queue
	return nil
}

// ask returns the last finding, at once. Without one, or when it is as old as the interval, a probe
// starts, which enqueues the Cluster when it ends.
func (p *prober) ask(asked question) (finding, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	last, found := p.findings[asked.cluster.Name]
	current := found && last.asked == asked
	if !current || time.Since(last.at) >= p.interval*9/10 { // a timer may fire a little early
		p.launch(asked)
	}
	return last, current
}

func (p *prober) forget(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.findings, name)
}

// launch starts a probe. The caller holds the mutex.
func (p *prober) launch(asked question) {
	name := asked.cluster.Name
	if p.running[name] || p.life == nil || p.life.Err() != nil {
		return
	}
	p.running[name] = true
	go p.probe(p.life, asked)
}

func (p *prober) probe(ctx context.Context, asked question) {
	found := finding{asked: asked}
	select {
	case p.slots <- struct{}{}:
		found.version, found.answers = p.version(ctx, asked)
		<-p.slots
	case <-ctx.Done():
	}
	found.at = time.Now()
	name := asked.cluster.Name
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.running, name)
	p.findings[name] = found
	p.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
}

// version is empty if the API server does not answer, or is another user cluster's. The log has the reason: a
// Cluster's status has no field for it.
func (p *prober) version(ctx context.Context, asked question) (version string, answers bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	kubeconfig, err := cluster.ReadKubeconfig(ctx, p.reader, asked.cluster)
	if err == nil {
		version, err = p.identities.Probe(ctx, asked.cluster, asked.confirmed, kubeconfig)
	}
	var swapped *cluster.SwappedError
	switch {
	case err == nil:
		return version, true
	case errors.As(err, &swapped):
		log.FromContext(ctx).Info("API server belongs to another user cluster", "cluster", asked.cluster.Name, "problem", err.Error())
		return "", true
	}
	log.FromContext(ctx).Info("API server does not answer", "cluster", asked.cluster.Name, "problem", err.Error())
	return "", false
}
