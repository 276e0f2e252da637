package seed

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// Red when a worker that is ended in the middle of a pass still reports: a Seed that comes back under the name would have a row of the
// former one.
func TestAWorkerThatWasEndedReportsNothing(t *testing.T) {
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		once()
		<-request.Context().Done()
	}))
	defer server.Close()
	workers := NewWorkers(Options{
		Resync: time.Hour, CountEvery: time.Hour, Clock: clock.RealClock{},
		Usage:  usage.NewLedger("platform", clock.RealClock{}, nil, nil),
		Report: func(state State) { t.Errorf("reported %+v", state) },
	})
	to := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	workers.Assign(t.Context(), []Target{{Name: "gone", Config: to, ConfigID: "1"}}, &Wanted{})
	<-asked
	workers.Assign(t.Context(), nil, &Wanted{})
	workers.running.Wait()
}
