package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

// greeted creates a connection to a hostile API server and greets it within the time of a visit.
func greeted(t *testing.T, server *hostile.Server) (*Connection, error) {
	t.Helper()
	l, err := newLink(server.Config(), remote.Options{Budget: remote.NewBudget(answersAtOnce)}, func(*link, error) {})
	expect.NoError(t, err)
	t.Cleanup(func() { l.close("", "", "") })
	connection, err := newConnection(l)
	expect.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
	defer cancel()
	return connection.greet(ctx)
}

// TestDiscoveryIsBounded (AC56): An API server's discovery that exceeds limits is refused while it is read, costs
// little and leaves nothing behind.
func TestDiscoveryIsBounded(t *testing.T) {
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	for _, mode := range []string{"empty-kinds", "endless-verbs", "long-kinds", "deep-discovery", "many-groups", "long-version", "no-json", "endless-body"} {
		t.Run(mode, func(t *testing.T) {
			server.Set(hostile.ModeNamed(mode))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := greeted(t, server)
			runtime.ReadMemStats(&after)
			var misbehaves *remote.MisbehavesError
			if !errors.As(err, &misbehaves) {
				t.Errorf("got %v", err)
			}
			// The figure includes the server, which runs in this process. Before there were limits, one answer took 5
			// GiB, and 100,000 calls 2.4 GiB.
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 250 {
				t.Errorf("took %d MiB", took)
			}
			if asked := server.Count("requests"); asked > 2*askedLimit {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
	server.Set(hostile.Truth)
	if _, err := greeted(t, server); err != nil {
		t.Errorf("an honest one: %v", err)
	}
}

// TestOldDiscoveryStillWorks: an API server that does not aggregate discovery is asked for each version, with the
// same result.
func TestOldDiscoveryStillWorks(t *testing.T) {
	p := newPlace(t, "old-discovery")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	connection := p.live(p.connections())
	client := connection.kinds.client
	whole, err := listGroups(t.Context(), client)
	expect.NoError(t, err)
	var apart []group
	for _, path := range []string{"/api", "/apis"} {
		raw, err := client.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
		expect.NoError(t, err)
		read := readGroups
		if path == "/api" {
			read = readCore
		}
		groups, err := read(raw)
		expect.NoError(t, err)
		expect.NoError(t, askEach(t.Context(), client, path, groups))
		apart = append(apart, groups...)
	}
	if one, other := fmt.Sprint(versionsOf(whole)), fmt.Sprint(versionsOf(apart)); one != other || len(versionsOf(whole)) < 50 {
		t.Errorf("aggregated: %s\nasked for one by one: %s", one, other)
	}
}

// TestMisbehavingClusterIsLeftAlone (RS13, AC54, AC75): After a list beyond its limits, the cluster rests. It is not
// called during its rest, regardless of what its tenant writes, and is connected again after a correct answer.
func TestMisbehavingClusterIsLeftAlone(t *testing.T) {
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	p := newPlace(t, "misbehaving")
	p.keep("internal-admin-kubeconfig", server.Kubeconfig())
	c := p.connections()
	c.pace.rest = c.pace.most // before any connector exists
	connection := p.live(c)
	server.Set(hostile.ModeNamed("big-pages"))
	kinds := connection.Metadata.Resource(v1Resource.WithVersion("v1"))
	_, err := kinds.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b", Limit: 500})
	var misbehaves *remote.MisbehavesError
	if !errors.As(err, &misbehaves) {
		t.Fatalf("got %v", err)
	}
	_, err = c.Get(Describe(p.kkp), "test", nil)
	var problem *NotConnectedError
	if !errors.As(err, &problem) || problem.Reason != v1.ReasonClusterMisbehaves || !strings.Contains(problem.Message, "GET /api/v1/namespaces") {
		t.Fatalf("got %v", err)
	}
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName}) // as if its Secret had been written
	before := server.Count("requests")
	if _, err := kinds.List(t.Context(), metav1.ListOptions{}); !errors.As(err, &problem) {
		t.Errorf("it was called while it rests: %v", err)
	}
	if after := server.Count("requests"); after != before {
		t.Errorf("%d requests while it rests", after-before)
	}
	server.Set(hostile.Truth)
	connection = p.live(c)
	if _, err := connection.Metadata.Resource(v1Resource.WithVersion("v1")).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// TestPingFloodEnds: no call is made; the flood ends with the connection, and the cluster rests.
func TestPingFloodEnds(t *testing.T) {
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	p := newPlace(t, "pings")
	p.keep("internal-admin-kubeconfig", server.Kubeconfig())
	c := p.connections()
	connection := p.live(c)
	server.Set(hostile.ModeNamed("pings"))
	if err := call(t, connection); err != nil { // the flood begins with an answer
		t.Logf("the call that it began with: %v", err)
	}
	p.refused(c, v1.ReasonClusterMisbehaves)
	if bursts := server.Count("bursts of pings"); bursts > 6000 {
		t.Errorf("%d bursts of a hundred pings were taken", bursts)
	}
	server.Set(hostile.Truth)
	connection = p.live(c)
	expect.Eventually(t, expect.Patience, func() error { return call(t, connection) })
}
