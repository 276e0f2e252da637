package query

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	installed    = 10_000
	ofEach       = 20 // installations of a namespace
	creators     = 16
	pageRequests = 400
	pageCPU      = 5.0 // ms
	firstRow     = 300.0
)

// calls counts what a manager asks of its API server, apart from watches.
type calls struct {
	http.RoundTripper
	count *atomic.Int64
}

func (c calls) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" {
		c.count.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}

// BenchmarkInstallations holds bars about lists of 10,000 installations: calls, and CPU of a page.
func BenchmarkInstallations(b *testing.B) {
	log.SetLogger(logr.Discard())
	server := fleet.ForTest(b, fleet.ClusterOptions{Name: "seed"}).Cluster("seed")
	made := &bench{B: b, token: server.Config.BearerToken}
	made.seed = kit.Client(b, server.Config)
	expect.Create(b, made.seed, kit.Namespace(place))
	made.install()
	var asked atomic.Int64
	counted := rest.CopyConfig(server.Config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return calls{next, &asked} })
	made.serve(kit.Seed(b, counted, place))
	url := "https://" + made.endpoint.Address() + "/api/v1/installations"
	var first answer
	expect.Eventually(b, expect.Patience, func() error {
		if first, _ = made.once(url, nil); !strings.Contains(first.body, fmt.Sprintf(`"total":%d`, installed)) {
			return fmt.Errorf("not all installations were read yet")
		}
		return nil
	})
	before, reviews := asked.Load(), made.reviews.calls.Load()
	began := time.Now()
	made.once(url, nil)
	bar.Time(b, "ms-first-row", float64(time.Since(began).Microseconds())/1000, firstRow)
	for b.Loop() {
		for name, parameters := range map[string]string{
			"page": "", "sorted": "?sort=-created", "searched": "?search=app-1&sort=cluster", "large": "?limit=500",
		} {
			one, _ := made.once(url+parameters, nil)
			start := processorTime(b)
			send(b, load{
				Token: made.token, Authority: made.authority, URL: url + parameters, Requests: pageRequests, Connections: connections,
				Status: http.StatusOK, Bytes: len(one.body),
			})
			bar.Time(b, "ms-cpu-"+name, float64(((processorTime(b)-start)/pageRequests).Microseconds())/1000, pageCPU)
		}
	}
	bar.Exactly(b, "manager-calls", float64(asked.Load()-before), 0)
	bar.Exactly(b, "reviews", float64(made.reviews.calls.Load()-reviews), 0)
}

// install creates the installations, in namespaces of Clusters.
func (b *bench) install() {
	var group sync.WaitGroup
	for creator := range creators {
		group.Go(func() {
			for number := creator; number < installed/ofEach; number += creators {
				namespace := fmt.Sprintf("cluster-%04d", number)
				expect.Create(b, b.seed, kit.Namespace(namespace))
				for i := range ofEach {
					object := given.Installation(namespace, fmt.Sprintf("app-%02d", i), "web", "apps")
					expect.Create(b, b.seed, object)
					if i%4 > 0 {
						continue
					}
					object.Status.Conditions = []metav1.Condition{{
						Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonUnhealthy, LastTransitionTime: metav1.Now(),
						Message: "Deployment apps/web: " + strings.Repeat("it has no replica that is available; ", 4),
					}}
					expect.UpdateStatus(b, b.seed, object)
				}
			}
		})
	}
	group.Wait()
}
