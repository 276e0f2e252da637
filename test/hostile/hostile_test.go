package hostile_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "user"}) }

type question struct{ method, path, body string }

// requests are one of each sort, so that every mode has a request to lie about.
var requests = []question{
	{http.MethodGet, "/version", ""},
	{http.MethodGet, "/api", ""},
	{http.MethodGet, "/apis", ""},
	{http.MethodGet, "/api/v1", ""},
	{http.MethodGet, "/api/v1/configmaps?labelSelector=a", ""},
	{http.MethodGet, "/api/v1/namespaces/kube-system", ""},
	{http.MethodPatch, "/api/v1/namespaces/default/configmaps/kit?fieldManager=kit&force=true",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kit"},"data":{"a":"b"}}`},
	{http.MethodGet, "/api/v1/namespaces/default/secrets/kit", ""},
	{http.MethodPatch, "/api/v1/namespaces/default/secrets/kit?fieldManager=kit&force=true",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"kit"}}`},
}

// TestEveryModeLies checks that each mode affects a client that requests everything, and that an honest answer
// follows. A mode without effect would make its tests pass without an attack.
func TestEveryModeLies(t *testing.T) {
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	names := map[string]bool{}
	for _, mode := range append(hostile.Modes(), hostile.ModesOfSeeds()...) {
		if names[mode.Name] || mode.About == "" {
			t.Errorf("mode %q is there twice, or does not tell what it does", mode.Name)
		}
		names[mode.Name] = true
		t.Run(mode.Name, func(t *testing.T) {
			small := mode.Dose
			small.Size, small.Wait = min(small.Size, 1<<20), min(small.Wait, 10*time.Millisecond)
			server.SetDose(mode, small)
			client := dial(t, server)
			for _, request := range requests {
				ask(t, client, server, request)
			}
			ask(t, client, server, question{http.MethodGet, "/apis/kubermatic.k8c.io/v1/addoninstallations?limit=500", ""})
			counts := server.Counts()
			delete(counts, "requests")
			delete(counts, "writes")
			if len(counts) == 0 {
				t.Error("nothing that this mode does was seen")
			}
			server.Set(hostile.Truth)
			if code, body := ask(t, dial(t, server), server, question{http.MethodGet, "/version", ""}); code != http.StatusOK || !strings.Contains(body, "gitVersion") {
				t.Errorf("the truth is %d %q", code, body)
			}
		})
	}
}

// TestModeNamed checks that a mode is found by its name, and that a wrong name gives Truth.
func TestModeNamed(t *testing.T) {
	if got := hostile.ModeNamed("pings").Name; got != "pings" {
		t.Errorf("mode pings is %q", got)
	}
	if got := hostile.ModeNamed("none").Name; got != hostile.Truth.Name {
		t.Errorf("an unknown mode is %q", got)
	}
}

func dial(t *testing.T, server *hostile.Server) *http.Client {
	t.Helper()
	transport, err := rest.TransportFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ask reads at most 4 MiB of an answer, for at most 5 s.
func ask(t *testing.T, client *http.Client, server *hostile.Server, asked question) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, asked.method, server.Config().Host+asked.path, strings.NewReader(asked.body))
	if err != nil {
		t.Fatal(err)
	}
	if asked.body != "" {
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return response.StatusCode, string(content)
}
