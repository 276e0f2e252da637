package outbound_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/test/collector"
)

// TestRequestsAreTracedByHostAndStatus: The span of a request has its method, its host and its result, and nothing of
// the path, the query, the credentials or the answer.
func TestRequestsAreTracedByHostAndStatus(t *testing.T) {
	to, ctx, flush := collector.Traced(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Planted", "planted")
		switch r.URL.Path {
		case "/planted/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/planted/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte("planted"))
	}))
	defer server.Close()
	made := network(t, outbound.Options{AllowInsecure: true, AllowCIDRs: fetchtest.Loopback})
	ctx, root := tracing.BeginTrace(ctx, tracing.Fetch, "test")
	login := outbound.Request{Credentials: fetch.Credentials{Username: "planted", Password: "planted"}}
	for _, path := range []string{"/planted/there?token=planted", "/planted/missing", "/planted/broken"} {
		if _, err := get(ctx, made, login, server.URL+path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := get(ctx, made, login, "http://127.0.0.1:1/planted"); !isUnavailable(err) {
		t.Errorf("a closed port: %v", err)
	}
	root.End()
	flush()
	host := "  request GET server.address=" + strings.TrimPrefix(server.URL, "http://") + " http.response.status_code="
	want := []string{
		"fetch test", host + "200 trellis.result=ok", host + "404 trellis.result=unexpected", host + "500 trellis.result=unexpected (failed)",
		"  request GET server.address=127.0.0.1:1 trellis.result=unreachable (failed)",
	}
	spans := to.Spans(t)
	if len(spans) == 0 {
		t.Fatal("nothing is told")
	}
	if diff := cmp.Diff(want, collector.Tree(spans, spans[0].Trace)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
	for _, message := range to.Messages() {
		if bytes.Contains(message, []byte("planted")) {
			t.Errorf("the collector was sent something planted: %q", message)
		}
	}
}
