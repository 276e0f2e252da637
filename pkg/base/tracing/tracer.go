package tracing

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
)

// Options of a Tracer.
type Options struct {
	// Endpoint is the collector's URL for traces, with its path.
	Endpoint *url.URL
	// Client sends them; NewClient makes it.
	Client *http.Client
	// Header is sent with each message, such as one that authenticates us. It is never logged.
	Header http.Header
	// Ratio of traces that are made, from 0 to 1.
	Ratio float64
	// Resource are the attributes of this process.
	Resource map[string]string
	// Version of the program.
	Version string
	Log     logr.Logger
	// Metrics count spans; see NewMetrics.
	Metrics *Metrics
}

// Tracer makes traces and sends them, while Start runs.
type Tracer struct {
	// below: a trace is made if half of its ID is below this.
	below  uint64
	queue  *queue
	sender sender
}

// New makes a Tracer.
func New(options Options) *Tracer {
	queue := newQueue(options.Metrics)
	return &Tracer{
		below: threshold(options.Ratio), queue: queue,
		sender: sender{options: options, queue: queue, head: newHead(options.Resource, options.Version)},
	}
}

type tracerKey struct{}

// Into returns a context whose traces the Tracer makes; nil returns the context.
func (t *Tracer) Into(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, t)
}

// From is the Tracer of a context; nil: there is none.
func From(ctx context.Context) *Tracer {
	found, _ := ctx.Value(tracerKey{}).(*Tracer)
	return found
}

// draw makes a trace's ID, and says whether the trace is made. That follows from the ID, as in OpenTelemetry's own
// sampling by ratio.
func (t *Tracer) draw() (id traceID, isTraced bool) {
	second := rand.Uint64()
	if second>>1 >= t.below {
		return id, false
	}
	binary.BigEndian.PutUint64(id[:8], rand.Uint64()|1) // an ID of zeros is invalid
	binary.BigEndian.PutUint64(id[8:], second)
	return id, true
}

func newSpanID() (id spanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

func threshold(ratio float64) uint64 {
	switch {
	case ratio >= 1:
		return math.MaxUint64
	case ratio <= 0:
		return 0
	}
	return uint64(ratio * (1 << 63))
}

// Start sends ended spans, until the context ends; then it sends the rest within two seconds.
func (t *Tracer) Start(ctx context.Context) error {
	// A send that runs at the end is not begun again: the collector may have it.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastSend, cancel) })()
	timer := time.NewTimer(sendEvery)
	defer timer.Stop()
	full := t.queue.full
	for {
		select {
		case <-ctx.Done():
			t.sender.sendLast(work)
			return nil
		case <-full:
		case <-timer.C:
		}
		wait := t.sender.send(work, ctx.Done())
		full = t.queue.full
		if wait > 0 { // a full queue does not make a collector answer sooner
			full = nil
		}
		timer.Reset(max(wait, sendEvery))
	}
}

// NeedLeaderElection is false: a replica that waits has traces, too.
func (t *Tracer) NeedLeaderElection() bool { return false }
