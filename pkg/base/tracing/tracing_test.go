package tracing_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/test/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a Tracer that runs until stop, which says how long its end took.
type running struct {
	*tracing.Tracer
	ctx      context.Context
	registry *prometheus.Registry
	lines    *strings.Builder
	stop     func() time.Duration
}

func start(t testing.TB, to string, change ...func(*tracing.Options)) *running {
	t.Helper()
	endpoint, err := url.Parse(to + "/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{registry: prometheus.NewRegistry(), lines: &strings.Builder{}}
	options := tracing.Options{
		Endpoint: endpoint, Client: tracing.NewClient(nil, 10*time.Second), Ratio: 1, Version: "1.0.0",
		Resource: map[string]string{"service.name": "trellis-test"}, Metrics: tracing.NewMetrics(r.registry),
		Log: funcr.New(func(_, line string) { r.lines.WriteString(line + "\n") }, funcr.Options{}),
	}
	for _, change := range change {
		change(&options)
	}
	r.Tracer = tracing.New(options)
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = r.Into(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	r.stop = func() time.Duration {
		begun := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return time.Since(begun)
	}
	return r
}

// counted are spans by result.
func (r *running) counted(t testing.TB, result string) int {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range families[0].GetMetric() {
		if metric.GetLabel()[0].GetValue() == result {
			return int(metric.GetCounter().GetValue())
		}
	}
	return -1
}

// pass traces a pass with one step and one call in it.
func pass(ctx context.Context, name string) {
	ctx, root := tracing.BeginTrace(ctx, tracing.Reconcile, "test")
	root.Set(tracing.ObjectName, name)
	ctx, step := tracing.Begin(ctx, tracing.Step, "apply")
	within, cancel := context.WithCancel(ctx)
	_, call := tracing.Begin(within, tracing.Call, "get nodes")
	call.Number(tracing.StatusCode, http.StatusServiceUnavailable)
	call.Fail()
	call.End()
	cancel()
	step.End()
	root.End()
}

func TestSpansArriveAsATree(t *testing.T) {
	to := collector.Start(t)
	r := start(t, to.URL)
	pass(r.ctx, "one")
	pass(r.ctx, "two")
	r.stop()
	spans := to.Spans(t)
	if len(spans) != 6 {
		t.Fatalf("%d spans arrived, want 6", len(spans))
	}
	want := []string{
		"pass test trellis.object.name=one", "  step apply", "    call get nodes http.response.status_code=503 (failed)",
	}
	if diff := cmp.Diff(want, collector.Tree(spans, spans[0].Trace)); diff != "" {
		t.Errorf("the first trace (-want +got):\n%s", diff)
	}
	if spans[0].Kind != tracepb.Span_SPAN_KIND_CLIENT || spans[1].Kind != tracepb.Span_SPAN_KIND_INTERNAL {
		t.Errorf("kinds of a call and a step are %s and %s, want a client's and an internal one", spans[0].Kind, spans[1].Kind)
	}
	for _, span := range spans {
		if len(strings.TrimLeft(span.Trace, "0")) == 0 || len(span.Trace) != 32 || len(strings.TrimLeft(span.ID, "0")) == 0 || len(span.ID) != 16 {
			t.Errorf("span %+v has trace ID %q and ID %q, want 16 and 8 bytes that are not all zero", span, span.Trace, span.ID)
		}
		if span.Begun.IsZero() || span.Ended.Before(span.Begun) {
			t.Errorf("span %+v expires before it becomes valid", span)
		}
		if diff := cmp.Diff([]string{"service.name=trellis-test"}, span.Resource); diff != "" {
			t.Errorf("resource (-want +got):\n%s", diff)
		}
	}
	if sent := r.counted(t, "sent"); sent != 6 {
		t.Errorf("%d spans are counted as sent, want 6", sent)
	}
}

// A text that is no UTF-8 would have a collector refuse every span of the message.
func TestTextsAreCutAndCleaned(t *testing.T) {
	to := collector.Start(t)
	r := start(t, to.URL)
	_, root := tracing.BeginTrace(r.ctx, tracing.Reconcile, "test")
	root.Set(tracing.ObjectName, "a\xffb"+strings.Repeat("x", 1000))
	root.Set(tracing.ObjectNamespace, "")
	root.End()
	r.stop()
	found := to.Spans(t)[0].Attributes
	if len(found) != 1 || !strings.HasPrefix(found[0], "trellis.object.name=a?bx") || len(found[0]) > 300 {
		t.Errorf("attributes are %q", found)
	}
}

func TestARatioOfTracesIsMadeAndTheirSpansAreWhole(t *testing.T) {
	to := collector.Start(t)
	r := start(t, to.URL, func(options *tracing.Options) { options.Ratio = 0.1 })
	for range 5000 {
		pass(r.ctx, "x")
	}
	r.stop()
	roots, spans := 0, to.Spans(t)
	for _, span := range spans {
		if span.Parent == "" {
			roots++
		}
	}
	if roots < 350 || roots > 650 { // six deviations, and more
		t.Errorf("%d of 5000 passes are traced, want about 500", roots)
	}
	if len(spans) != 3*roots {
		t.Errorf("%d spans of %d traces, want 3 each", len(spans), roots)
	}
}

func TestAHeaderIsSentAndNotLogged(t *testing.T) {
	to := collector.Start(t)
	to.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	r := start(t, to.URL, func(options *tracing.Options) { options.Header = http.Header{"Authorization": {"Bearer planted"}} })
	pass(r.ctx, "x")
	r.stop()
	if got := to.Headers()[0].Get("Authorization"); got != "Bearer planted" {
		t.Errorf("the header is %q", got)
	}
	if strings.Contains(r.lines.String(), "planted") {
		t.Errorf("the log has the header: %s", r.lines)
	}
	if failed := r.counted(t, "failed"); failed != 3 {
		t.Errorf("%d spans are counted as failed, want 3", failed)
	}
}

// Without a Tracer, or in a trace that chance left out, nothing is allocated and nothing breaks.
func TestNothingIsAllocatedWhereNothingIsTraced(t *testing.T) {
	never := tracing.New(tracing.Options{Endpoint: &url.URL{}, Metrics: tracing.NewMetrics(prometheus.NewRegistry())})
	for name, ctx := range map[string]context.Context{"off": t.Context(), "left out": never.Into(t.Context())} {
		allocated := testing.AllocsPerRun(1000, func() {
			within, root := tracing.BeginTrace(ctx, tracing.Reconcile, "test")
			root.Set(tracing.ObjectName, "x")
			within, step := tracing.Begin(within, tracing.Step, "apply")
			if within != ctx || root != nil || step != nil || tracing.IsTraced(within) {
				t.Fatal("something is traced")
			}
			step.Number(tracing.StatusCode, 1)
			step.Fail()
			step.End()
			root.End()
		})
		if allocated != 0 {
			t.Errorf("%s: a pass allocates %v times", name, allocated)
		}
	}
}

func BenchmarkSpan(b *testing.B) {
	r := start(b, collector.Start(b).URL)
	ctx, _ := tracing.BeginTrace(r.ctx, tracing.Reconcile, "test")
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracing.Begin(ctx, tracing.Call, "get nodes")
		span.Set(tracing.Server, "remote")
		span.Set(tracing.Result, tracing.OK)
		span.Number(tracing.StatusCode, http.StatusOK)
		span.End()
	}
	r.stop()
	b.ReportMetric(float64(r.counted(b, "dropped"))/float64(b.N), "dropped/op")
}
