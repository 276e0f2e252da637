package child

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Defaults of Options.
const (
	DefaultMemory   = 384 << 20
	DefaultCPU      = 20 * time.Second
	DefaultTimeout  = 30 * time.Second
	DefaultChildren = 3
	// defaultRenders is the number of renderings that justifies the start of one process.
	defaultRenders = 256
)

// Options of a pool. Zero values are defaults.
type Options struct {
	// Memory is the maximum that one child may allocate, in bytes.
	Memory int64
	// CPU is the processor time, Timeout the wall-clock time, that one rendering may take.
	CPU, Timeout time.Duration
	// Children is the maximum number of concurrent renderings. One more process may wait for work, unless Alone.
	Children int
	Alone    bool
	// Renders is the number of renderings of its tenant after which a child is replaced.
	Renders int
	Log     logr.Logger
	// Metrics of the pool, see NewMetrics; nil: none.
	Metrics *Metrics
}

// Pool renders in children. It is a Runnable of a manager; started or not, it can be used.
type Pool struct {
	options Options
	starter *starter

	mutex  sync.Mutex
	places *places // guarded by the mutex
	// background is everything that Close waits for.
	background sync.WaitGroup
	warned     sync.Once
}

// New creates a pool. Close ends its children.
func New(options Options) *Pool {
	options.Memory = cmp.Or(options.Memory, DefaultMemory)
	options.CPU = cmp.Or(options.CPU, DefaultCPU)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.Children = cmp.Or(options.Children, DefaultChildren)
	options.Renders = cmp.Or(options.Renders, defaultRenders)
	options.Metrics = cmp.Or(options.Metrics, NewMetrics(prometheus.NewRegistry()))
	beside := 1
	if options.Alone {
		beside = 0
	}
	return &Pool{options: options, starter: newStarter(), places: newPlaces(options.Children, beside)}
}

// ErrClosed reports that the pool is closed.
var ErrClosed = errors.New("the renderers are shut down")

// Start keeps a child ready until the context ends, and then ends all of them.
func (p *Pool) Start(ctx context.Context) error {
	p.replenish()
	<-ctx.Done()
	p.Close()
	return nil
}

// Renderer renders one method in children, which get the files that wants selects.
func (p *Pool) Renderer(method string, wants Wants) render.Renderer {
	p.options.Metrics.begin(method)
	return &renderer{pool: p, method: method, wants: wants}
}

type renderer struct {
	pool   *Pool
	method string
	wants  Wants
}

// Render implements render.Renderer. In addition to the method's own errors, *render.ExhaustedError,
// *render.DiedError and *render.ProtocolError are about the add-on; *render.LostError and others are about the
// machine or the context.
func (r *renderer) Render(ctx context.Context, input render.Input) (render.Result, error) {
	job := job{
		tenant: input.Tenant, addon: input.Addon, method: r.method, ask: askObjects(r.method, input, r.wants),
		values: input.Values, data: input.Data, secrets: render.SecretTexts(input.Found),
	}
	read, err := r.pool.do(ctx, job)
	if err != nil {
		return render.Result{}, err
	}
	return read.result, nil
}

// RenderValues implements render.ValuesRenderer, with the errors of Render.
func (p *Pool) RenderValues(ctx context.Context, input render.ValuesInput) (map[string]any, error) {
	job := job{tenant: input.Tenant, addon: input.Addon, method: methodValues, ask: askValues(input), data: input.Data}
	read, err := p.do(ctx, job)
	if err != nil {
		return nil, err
	}
	return read.values, nil
}

// methodValues is the method of rendered values, in metrics.
const methodValues = "values"

// job is one rendering.
type job struct {
	tenant, addon, method string
	ask                   question
	values                map[string]any
	data                  templatedata.Data
	// secrets come from objects that function lookup finds.
	secrets []string
}

// do renders in a child of the job's tenant.
func (p *Pool) do(ctx context.Context, job job) (read *answer, err error) {
	ctx, span := tracing.Begin(ctx, tracing.Render, job.method)
	defer func() { endSpan(span, err) }()
	at, err := p.enter(ctx, job.tenant)
	if err != nil {
		return nil, err
	}
	defer p.leave(at)
	read, err = p.renderAt(ctx, at, job)
	if _, lost := errors.AsType[*render.LostError](err); lost && at.child != nil && at.child.waited {
		p.end(at) // it may have been killed while it waited: start a new one
		read, err = p.renderAt(ctx, at, job)
	}
	if at.child != nil {
		p.countRendering(at, err == nil)
	}
	return read, err
}

func (p *Pool) renderAt(ctx context.Context, at *place, job job) (*answer, error) {
	process, err := p.staff(at, job.tenant)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	read, err := p.converse(ctx, process, job)
	if err == nil && read.failed != nil {
		err = withoutValues(redact.New(job.values, job.data, job.secrets...), read.failed)
	}
	p.options.Metrics.rendered(job.method, err, time.Since(begun))
	if err != nil {
		return nil, err
	}
	return read, nil
}

// converse sends a request to a child and reads its answer, while the child is watched.
func (p *Pool) converse(ctx context.Context, process *process, job job) (*answer, error) {
	watch := watchOver(ctx, process, p.options)
	read, err := exchange(process, p.options.Timeout, job.ask)
	exceeded := watch.end()
	switch {
	case err == nil && exceeded == "":
		return read, nil
	case p.isClosed():
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, fmt.Errorf("rendering add-on %q: %w", job.addon, context.Cause(ctx))
	case exceeded != "":
		return nil, &render.ExhaustedError{Addon: job.addon, Limit: exceeded, Most: p.most(exceeded)}
	}
	var refused *render.ProtocolError
	var limit *render.LimitError
	var unsent *unsentError
	switch {
	case errors.As(err, &limit):
		return nil, limit
	case errors.As(err, &refused):
		return nil, refused
	case errors.As(err, &unsent):
		return nil, unsent.err
	}
	return nil, process.deathError(job.addon)
}

func (p *Pool) most(limit string) string {
	switch limit {
	case limitMemory:
		return fmt.Sprintf("%d MiB", p.options.Memory>>20)
	case limitCPU:
		return p.options.CPU.String()
	}
	return p.options.Timeout.String()
}

// afterTimeout is the time after a timeout when reading and writing end, if the end of the child did not end them.
const afterTimeout = 10 * time.Second

// unsentError reports that the request's content could not be read; the child is not at fault.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }

// pipe records whether a write failed.
type pipe struct {
	file   *os.File
	broken bool
}

func (p *pipe) Write(data []byte) (int, error) {
	written, err := p.file.Write(data)
	p.broken = p.broken || err != nil
	return written, err
}

// exchange sends a request to a child and reads the answer.
func exchange(process *process, timeout time.Duration, ask question) (*answer, error) {
	deadline := time.Now().Add(timeout + afterTimeout)
	if err := errors.Join(process.requests.SetWriteDeadline(deadline), process.answers.SetReadDeadline(deadline)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	to := &pipe{file: process.requests}
	if err := ask(bufio.NewWriterSize(to, eager)); err != nil {
		if to.broken {
			return nil, err
		}
		return nil, &unsentError{err: err}
	}
	read, err := readAnswer(process.reading)
	if err == nil && process.reading.Buffered() > 0 {
		return nil, &render.ProtocolError{Problem: "it has more data than was requested"}
	}
	return read, err
}
