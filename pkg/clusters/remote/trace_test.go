package remote

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/test/collector"
)

// Red when a name, or a kind whose name no API server takes, gets into a trace.
func TestAPathShowsItsKindAndNoName(t *testing.T) {
	for path, want := range map[string]resource{
		"/api/v1/namespaces/x/configmaps/y":                 {"configmaps", true},
		"/api/v1/namespaces/x/configmaps":                   {"configmaps", false},
		"/api/v1/namespaces/x":                              {"namespaces", true},
		"/api/v1/namespaces":                                {"namespaces", false},
		"/api/v1/namespaces/x/finalize":                     {"namespaces/finalize", true},
		"/api/v1/nodes/x":                                   {"nodes", true},
		"/api/v1/namespaces/x/services/y/proxy/secret/path": {"services/proxy", true},
		"/apis/apps/v1/namespaces/x/deployments/y/scale":    {"deployments.apps/scale", true},
		"/apis/apps/v1/namespaces/api/deployments/y":        {"deployments.apps", true},
		"/api/v1/namespaces/apis/secrets/api":               {"secrets", true},
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/x": {"clusterroles.rbac.authorization.k8s.io", true},
		"/api":                     {noResource, false},
		"/apis/apps/v1":            {noResource, false},
		"/version":                 {noResource, false},
		"/openapi/v3/apis/apps/v1": {noResource, false},
		"/apis/evil.example.com/v1/namespaces/x/a%20value/y":      {strange, true},
		"/apis/UPPER/v1/namespaces/x/things/y":                    {strange, true},
		"/apis/apps/v1/namespaces/x/" + string(make([]byte, 200)): {strange, false},
	} {
		if got := resourceOf(path, ""); got != want {
			t.Errorf("path %.60q is %+v, want %+v", path, got, want)
		}
	}
}

// Red when a server that stands below a path has a segment of that path told: it may be a token.
func TestAServersOwnPathIsNotShown(t *testing.T) {
	for _, host := range []string{
		"https://api.invalid/api/clusters/t0k3n", "https://api.invalid/api/v1/t0k3n/", "https://api.invalid/apis/t0k3n/c/d/e", "https://api.invalid/c//t0k3n/apis",
	} {
		prefix := pathOf(host)
		for path, want := range map[string]resource{
			"/apis/apps/v1/namespaces/x/deployments/y": {"deployments.apps", true}, "/api/v1/pods": {"pods", false}, "/version": {noResource, false},
			"/api/v1/namespaces/x/services/y/proxy/apis/t0k3n/v1/z/": {"services/proxy", true},
		} {
			target, _, err := rest.DefaultServerURL(host, "", schema.GroupVersion{}, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := resourceOf(target.JoinPath(path).Path, prefix); got != want {
				t.Errorf("host %q, path %q is %+v, want %+v", host, path, got, want)
			}
		}
	}
	if got := resourceOf("/api/clusters/t0k3n/more", "/elsewhere"); got.name != strange {
		t.Errorf("a path that is not below the host's is %+v", got)
	}
}

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) { return a(request) }

// What no pass calls, such as a watch, makes no span; what one calls makes one, with verb, kind and result.
func TestOwnCallsAreTracedBelowAReconciliation(t *testing.T) {
	to, ctx, flush := collector.Traced(t)
	calls := Traced("https://api.invalid/api/clusters/planted")(answering(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodDelete {
			return nil, http.ErrHandlerTimeout
		}
		return &http.Response{StatusCode: http.StatusNotFound}, nil
	}))
	call := func(ctx context.Context, method, path string) {
		request, err := http.NewRequestWithContext(ctx, method, "https://api.invalid/api/clusters/planted"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = calls.RoundTrip(request)
	}
	call(ctx, http.MethodGet, "/api/v1/pods?watch=true")
	ctx, pass := tracing.BeginTrace(ctx, tracing.Reconcile, "test")
	call(ctx, http.MethodGet, "/api/v1/pods?labelSelector=planted")
	call(ctx, http.MethodDelete, "/apis/apps/v1/namespaces/x/deployments/planted")
	pass.End()
	flush()
	spans := to.Spans(t)
	want := []string{
		"pass test",
		"  call list pods trellis.server=own trellis.result=notFound http.response.status_code=404",
		"  call delete deployments.apps trellis.server=own trellis.result=unreachable (failed)",
	}
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	if diff := cmp.Diff(want, collector.Tree(spans, spans[0].Trace)); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
}

// Where nothing is traced, a call costs a look into its context.
func TestAnUntracedCallAllocatesNothingForItsSpan(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.invalid/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	if allocated := testing.AllocsPerRun(1000, func() { endCall(beginCall(request, serverRemote, ""), nil) }); allocated != 0 {
		t.Errorf("it allocates %v times", allocated)
	}
}
