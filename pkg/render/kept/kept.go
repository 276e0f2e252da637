package kept

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Defaults of Options.
const (
	DefaultBytes    = 64 << 20
	defaultPatience = 2 * time.Second
	defaultEntries  = 4096
	// firstPause and longestPause are the times between two tries of a rendering that ended a renderer.
	firstPause   = 5 * time.Minute
	longestPause = time.Hour
)

// Options have defaults.
type Options struct {
	// Methods are the renderers by name; Values renders templates of values.
	Methods map[string]render.Renderer
	Values  render.ValuesRenderer
	// Bytes is the limit of kept objects, in bytes.
	Bytes int // of objects that are kept
	// Patience is how long a caller waits for a rendering.
	Patience time.Duration
	Now      func() time.Time
	Metrics  *Metrics
}

// Renders are the renderings that are kept. It implements render.Keeper and render.ValuesKeeper.
type Renders struct {
	options Options
	mutex   sync.Mutex
	entries map[string]*entry
	// order has entries, the most recently used first.
	order *list.List
	bytes int
}

// New creates an empty cache.
func New(options Options) *Renders {
	options.Bytes = cmp.Or(options.Bytes, DefaultBytes)
	options.Patience = cmp.Or(options.Patience, defaultPatience)
	options.Metrics = cmp.Or(options.Metrics, NewMetrics(prometheus.NewRegistry()))
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Renders{options: options, entries: map[string]*entry{}, order: list.New()}
}

// entry is the known state of one digest of inputs.
type entry struct {
	key     string
	element *list.Element
	flight  *flight
	// outcome of the last rendering; nil before it, or after it was dropped.
	outcome *outcome
	// digests of the objects, by name; they stay without the outcome.
	digests digests
	// failures in a row that ended a renderer; the next try is not before until.
	failures int
	until    time.Time
	weight   int // bytes, as counted in Renders.bytes
	// isSpare: all that asked for it did so sparingly (render.Sparing).
	isSpare bool
}

// outcome is the end of a rendering.
type outcome struct {
	content packed
	changed []render.ObjectName
	err     error
}

// flight is a running rendering. outcome is set once done is closed.
type flight struct {
	done    chan struct{}
	outcome *outcome
	wakes   []func()
}

// Render implements render.Keeper.
func (r *Renders) Render(ctx context.Context, request render.Request) (render.Kept, error) {
	renderer, known := r.options.Methods[request.Method]
	if !known {
		return render.Kept{}, fmt.Errorf("method %q is not supported", request.Method)
	}
	came, err := r.get(ctx, asking{
		key: request.Inputs, again: request.Rerender, wake: request.Wake, patience: r.options.Patience,
		work: func(ctx context.Context) (packed, error) {
			result, err := renderer.Render(ctx, request.Input)
			if err != nil {
				return packed{}, err
			}
			return packResult(result)
		},
	})
	if err != nil {
		return render.Kept{}, err
	}
	result, err := came.content.result()
	return render.Kept{Result: result, Changed: came.changed}, err
}

// RenderValues implements render.ValuesKeeper.
func (r *Renders) RenderValues(ctx context.Context, input render.ValuesInput, wake func()) (map[string]any, error) {
	data, err := templatedata.Canonical(input.Data)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "values %d %s", len(input.Template), input.Template)
	hash.Write(data)
	if input.CAPI != nil {
		seen, err := encode(input.CAPI)
		if err != nil {
			return nil, err
		}
		hash.Write(seen)
	}
	came, err := r.get(ctx, asking{
		key: hex.EncodeToString(hash.Sum(nil)), wake: wake, patience: r.options.Patience,
		work: func(ctx context.Context) (packed, error) {
			values, err := r.options.Values.RenderValues(ctx, input)
			if err != nil {
				return packed{}, err
			}
			encoded, err := encode(values)
			return packed{objects: [][]byte{encoded}}, err
		},
	})
	if err != nil {
		return nil, err
	}
	return came.content.values()
}

// asking is one request for an outcome. patience is how long to wait.
type asking struct {
	key      string
	again    bool
	wake     func()
	patience time.Duration
	work     func(ctx context.Context) (packed, error)
}

// get returns the kept outcome, or waits for one.
func (r *Renders) get(ctx context.Context, asked asking) (*outcome, error) {
	r.mutex.Lock()
	entry := r.entry(asked.key, render.IsSparing(ctx))
	if entry.flight == nil {
		if came := entry.outcome; came != nil && !asked.again && r.isCurrent(entry) {
			r.mutex.Unlock()
			r.options.Metrics.asked.WithLabelValues("kept").Inc()
			return came, r.errorOf(entry, came)
		}
		entry.flight = &flight{done: make(chan struct{})}
		// The rendering is for all callers, so it does not end with the first caller's reconciliation.
		go r.fly(context.WithoutCancel(ctx), entry, entry.flight, asked.work)
	}
	flight := entry.flight
	r.mutex.Unlock()
	return r.await(ctx, entry, flight, asked)
}

func (r *Renders) await(ctx context.Context, entry *entry, flight *flight, asked asking) (*outcome, error) {
	enough := time.NewTimer(asked.patience)
	defer enough.Stop()
	select {
	case <-flight.done:
		return flight.outcome, r.errorOf(entry, flight.outcome)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-enough.C:
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if flight.outcome == nil && asked.wake != nil {
		flight.wakes = append(flight.wakes, asked.wake)
	} else if asked.wake != nil {
		asked.wake() // it ended in the same moment
	}
	return nil, render.ErrPending
}

// isCurrent reports whether an outcome is still valid. The mutex is held.
func (r *Renders) isCurrent(entry *entry) bool {
	err := entry.outcome.err
	return err == nil || render.Lasting(err) || r.options.Now().Before(entry.until)
}

// errorOf is an outcome's error for a caller.
func (r *Renders) errorOf(entry *entry, came *outcome) error {
	if came.err == nil || !render.Costly(came.err) {
		return came.err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return &render.PutOffError{Err: came.err, Until: entry.until}
}

// fly renders and keeps the result.
func (r *Renders) fly(ctx context.Context, entry *entry, flight *flight, work func(context.Context) (packed, error)) {
	content, err := work(ctx)
	r.mutex.Lock()
	came := r.land(entry, content, err)
	entry.flight, flight.outcome = nil, came // only now: an entry with a flight is not forgotten
	wakes := flight.wakes
	r.mutex.Unlock()
	r.options.Metrics.rendered(came)
	close(flight.done)
	for _, wake := range wakes {
		wake()
	}
}

// land keeps an outcome, if it is worth keeping. The mutex is held.
func (r *Renders) land(entry *entry, content packed, err error) *outcome {
	came := &outcome{content: content, err: err}
	switch {
	case err == nil:
		entry.failures = 0
		came.changed = entry.digests.differ(content.digests)
		if before := entry.outcome; len(came.changed) > 0 && before != nil && before.err == nil {
			came.content = before.content
		}
	case render.Costly(err):
		entry.failures++
		entry.until = r.options.Now().Add(backoff.After(entry.failures, firstPause, longestPause))
	case errors.Is(err, context.Canceled) || !render.Lasting(err):
		return came // only about this try
	}
	r.keep(entry, came)
	return came
}

// digests are the digests of objects, by name.
type digests map[render.ObjectName][sha256.Size]byte

// encode returns JSON: equal contents are equal bytes.
func encode(content any) ([]byte, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the rendering: %w", err)
	}
	return encoded, nil
}
