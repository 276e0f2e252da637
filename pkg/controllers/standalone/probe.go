package standalone

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/cluster"
)

const (
	// probeTimeout ends a probe of an API server that accepts and says nothing.
	probeTimeout = 10 * time.Second
	// probesAtOnce bounds the connections that dead API servers can hold.
	probesAtOnce = 32
)

// finding is what a probe found.
type finding struct {
	// version is empty when the API server did not answer.
	version string
	// secretVersion is the resourceVersion of the kubeconfig Secret that was asked for.
	secretVersion string
	at            time.Time
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// prober asks API servers for their version, beside the reconciles.
type prober struct {
	reader   client.Reader
	interval time.Duration
	slots    chan struct{}

	mutex    sync.Mutex
	life     context.Context
	queue    queue
	findings map[string]finding
	running  map[string]bool
}

func newProber(reader client.Reader, interval time.Duration) *prober {
	return &prober{
		reader: reader, interval: interval, slots: make(chan struct{}, probesAtOnce),
		findings: map[string]finding{}, running: map[string]bool{},
	}
}

// start is a source.Func: it keeps the queue to which objects come back when a probe ends.
func (p *prober) start(ctx context.Context, queue queue) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.life, p.queue = ctx, queue
	return nil
}

// look returns what is known of a cluster's API server for that state of its kubeconfig Secret, at once. When that is
// nothing, or as old as the interval, a probe is started, whose end brings the Cluster back.
func (p *prober) look(name, namespace, secretVersion string) (finding, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	last, found := p.findings[name]
	current := found && last.secretVersion == secretVersion
	if !current || time.Since(last.at) >= p.interval*9/10 { // a timer may fire a little early
		p.launch(name, namespace, secretVersion)
	}
	return last, current
}

// forget drops what is known of a Cluster that goes.
func (p *prober) forget(name string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.findings, name)
}

// launch needs the mutex.
func (p *prober) launch(name, namespace, secretVersion string) {
	if p.running[name] || p.life == nil || p.life.Err() != nil {
		return
	}
	p.running[name] = true
	go p.probe(p.life, name, namespace, secretVersion)
}

func (p *prober) probe(ctx context.Context, name, namespace, secretVersion string) {
	version := ""
	select {
	case p.slots <- struct{}{}:
		version = p.version(ctx, name, namespace)
		<-p.slots
	case <-ctx.Done():
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.running, name)
	p.findings[name] = finding{version: version, secretVersion: secretVersion, at: time.Now()}
	p.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
}

// version is empty where the API server can't be asked. The reason goes to the log: a Cluster's status has no place for it.
func (p *prober) version(ctx context.Context, name, namespace string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	kubeconfig, err := cluster.ReadKubeconfig(ctx, p.reader, namespace)
	if err == nil {
		var version string
		if version, err = cluster.Probe(ctx, kubeconfig); err == nil {
			return version
		}
	}
	log.FromContext(ctx).Info("API server does not answer", "cluster", name, "problem", err.Error())
	return ""
}
