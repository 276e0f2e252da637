package clusters

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/world"
)

// looks notes when a manager asks which groups of kinds there are, where that counts, or for anything of Cluster API.
type looks struct {
	groups bool

	mutex sync.Mutex
	all   int
	times []time.Time
	paths []string
}

func (l *looks) see(call gate.Call) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.all++
	if strings.Contains(call.Path, "cluster.x-k8s.io") || l.groups && call.Path == "/apis" {
		l.times, l.paths = append(l.times, time.Now()), append(l.paths, call.Method+" "+call.Path)
	}
	return true
}

// seen are the paths so far, of how many requests in all, and how many looks they are: what is asked within oneLook is one.
func (l *looks) seen() (paths []string, count, all int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var last time.Time
	for _, at := range l.times {
		if at.Sub(last) > oneLook {
			count++
			last = at
		}
	}
	return append([]string(nil), l.paths...), count, l.all
}

// pause is the time between the first look and the second.
func (l *looks) pause() time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, at := range l.times {
		if since := at.Sub(l.times[0]); since > oneLook {
			return since
		}
	}
	return 0
}

const (
	// oneLook is how long a look takes at most.
	oneLook = 20 * time.Second
	// betweenLooks is how long a manager waits until it looks for kinds again.
	betweenLooks = time.Minute
)

// bare is a management cluster with our own kinds alone.
func bare(t testing.TB) (*fleet.Fleet, client.WithWatch, *gate.Gate) {
	t.Helper()
	f := fleet.ForTest(t, fleet.ClusterOptions{Name: "management"})
	management := f.Cluster("management")
	expect.NoError(t, fleet.InstallCRDs(t.Context(), management.Config, fleet.CRDs(t)[0]))
	c, err := client.NewWithWatch(management.Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(t, err)
	expect.Create(t, c, world.Namespace(platformNamespace), world.Namespace(catalogueNamespace), world.Namespace(team))
	return f, c, gate.New(t, management)
}

// offered waits for the available catalogue of a Cluster.
func offered(t testing.TB, c client.Client, namespace, name string) {
	t.Helper()
	expect.Eventually(t, betweenLooks+expect.Patience, func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &v1.AddonCatalogue{})
	})
}

// TestKindsThatAreNotServedCostNothing: Red when a manager for KKP alone asks for anything of Cluster API, which is there, or runs a
// controller for Clusters of it alone; when one for both kinds looks for them more than once a minute, says an error, or does not serve
// them from the first look on after their CRDs came.
func TestKindsThatAreNotServedCostNothing(t *testing.T) {
	long.Skip(t, "fleet-sizes", "it takes more than a minute until a manager looks for kinds again")
	f, c, before := bare(t)
	capi := &looks{groups: true}
	before.Watch("both", gate.Guard{Before: capi.see})
	both := startManager(t, f, before.Kubeconfig(t, "both"), "--cluster-kinds=kkp,cluster-api", "--hold-upgrades",
		"--cluster-api-providers=fleetcontrolplanes."+clusterapi.ControlPlaneGroup)
	expect.Eventually(t, expect.Patience, func() error {
		if _, count, _ := capi.seen(); count == 0 {
			return errors.Join(errors.New("it has not looked yet"), both.Failure())
		}
		return both.Failure()
	})
	config := f.Cluster("management").Config
	expect.NoError(t, errors.Join(fleet.InstallCRDs(t.Context(), config, fleet.CRDs(t)[1]), clusterapi.InstallCRDs(t.Context(), config)))
	p := &platform{t: t, client: c, fleet: f}
	p.add(p.member(team, "one", nil))
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "kkp"}}
	expect.Create(t, c, made, world.Namespace("cluster-kkp"))
	made.Status.NamespaceName, made.Status.Versions.ControlPlane = "cluster-kkp", kubernetes
	expect.UpdateStatus(t, c, made)
	since := time.Now()

	// Meanwhile another one does not ask.
	none := &looks{}
	before.Watch("kkp", gate.Guard{Before: none.see})
	only := startManager(t, f, before.Kubeconfig(t, "kkp"), "--cluster-kinds=kkp", "--hold-upgrades", "--worker-name=kkp")
	offered(t, c, team, v1.AvailableCatalogue+"-one")
	offered(t, c, "cluster-kkp", v1.AvailableCatalogue)
	paths, count, _ := capi.seen()
	t.Logf("both kinds are served %s after their CRDs; the second look was %s after the first: %q",
		time.Since(since).Round(time.Second), capi.pause().Round(time.Second), paths)
	if pause := capi.pause(); pause < betweenLooks*9/10 || count != 2 {
		t.Errorf("they are served after %d looks for Cluster API, want 2; the second one was %s after the first", count, pause)
	}
	if paths, _, all := none.seen(); len(paths) > 0 || all == 0 {
		t.Errorf("a manager for KKP alone asks %d times, %q", all, paths)
	} else {
		t.Logf("a manager for KKP alone makes %d requests, none to Cluster API", all)
	}
	if _, runs := only.runs()["clusterupgrade"]; runs {
		t.Error("a manager for KKP alone runs what holds upgrades of Cluster API's Clusters")
	}
	if both.runs()["clusterupgrade"] == 0 {
		t.Errorf("one for both kinds does not: it has %v", both.runs())
	}
	for _, one := range []*manager{both, only} {
		if lines := one.errors(); len(lines) > 0 {
			t.Errorf("errors are logged: %q", lines)
		}
	}
}
