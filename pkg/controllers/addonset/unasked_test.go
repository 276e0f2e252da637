package addonset_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/standins"
)

// TestAClusterOfWhichNobodyCanBeAskedStopsNoWave: a write of one cluster's installation is lost, and the API server
// can't be asked for it afterwards. One cluster moves at a time. The test fails when the cluster is moving forever,
// when it is not reported as sick, when it is written before the API server was asked, and when it is not written
// once it can be asked.
func TestAClusterOfWhichNobodyCanBeAskedStopsNoWave(t *testing.T) {
	w := newWorld(t, 2, 2, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	line := &deadLine{path: "/namespaces/" + standins.NamespaceOf(w.names[0]) + "/addoninstallations/web", fails: true}
	w.start(line.over)
	of := w.write(w.set("tools", func(of *v1.AddonSet) {
		of.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 2 * time.Second}
	}))
	found := w.says(of, v1.ReasonComplete, current(1), func(counts v1.ClusterCounts) bool { return counts.Sick == 1 })
	if rows := found.Status.Clusters; len(rows) != 1 || rows[0].Name != w.names[0] || rows[0].State != v1.ClusterSick ||
		rows[0].Item != "web" || !strings.Contains(rows[0].Message, "it can't be written: ") {
		t.Errorf("the status lists %+v", rows)
	}
	w.steady(func() error { return line.wrote() })
	line.mend()
	w.says(of, v1.ReasonComplete, current(2))
	if at := w.at("1.0.0"); !slices.Equal(at, w.names) {
		t.Errorf("%q have it", at)
	}
}

// deadLine loses the first write of one installation, and all later requests for it, while it fails.
type deadLine struct {
	path  string
	mutex sync.Mutex
	fails bool
	// calls of the installation since the first write.
	calls []string
}

func (d *deadLine) mend() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.fails = false
}

// wrote is nil if only the first write was sent.
func (d *deadLine) wrote() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if len(d.calls) < 2 || slices.ContainsFunc(d.calls[1:], func(one string) bool { return one != http.MethodGet }) {
		return fmt.Errorf("the calls are %q, want a write, and then reads", d.calls)
	}
	return nil
}

// over wraps a transport.
func (d *deadLine) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, d.path) && d.isLost(request.Method) {
			return nil, errors.New("the line is dead")
		}
		return next.RoundTrip(request)
	})
}

func (d *deadLine) isLost(method string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.fails || method == http.MethodGet && len(d.calls) == 0 {
		return false
	}
	d.calls = append(d.calls, method)
	return true
}
