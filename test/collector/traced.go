package collector

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// Traced starts one, and gives a context in which all is traced to it. Spans that ended arrive by flush, once.
func Traced(t testing.TB) (to *Collector, ctx context.Context, flush func()) {
	t.Helper()
	to = Start(t)
	endpoint, err := url.Parse(to.URL + "/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New(tracing.Options{
		Endpoint: endpoint, Client: tracing.NewClient(nil, time.Minute), Ratio: 1, Metrics: tracing.NewMetrics(prometheus.NewRegistry()),
	})
	return to, tracer.Into(t.Context()), func() {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tracer.Start(ended); err != nil {
			t.Fatal(err)
		}
	}
}
