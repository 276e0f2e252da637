package cluster

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// existing is a finder that reports only which Clusters exist.
type existing struct {
	Finder
	clusters map[target.Ref]bool
}

func (e existing) Gone(_ context.Context, identity target.Ref) (bool, error) {
	return !e.clusters[identity], nil
}

// guarded are connections with identities in a namespace of the seed, as in a process that has just started.
func (p *place) guarded(namespace string, clusters ...*kkpv1.Cluster) *Connections {
	p.t.Helper()
	finder := existing{clusters: map[target.Ref]bool{}}
	for _, one := range clusters {
		finder.clusters[target.Ref{Kind: target.KindKKP, Name: one.Name, UID: one.UID}] = true
	}
	c := p.connections()
	c.UseIdentities(NewIdentities(p.seed, p.seed, finder, namespace))
	return c
}

// userCluster is the UID of namespace kube-system of a cluster of the fleet.
func userCluster(t *testing.T, name string) types.UID {
	t.Helper()
	var system corev1.Namespace
	err := directClient(t, fleet.Shared().Cluster(name).Config).Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system)
	expect.NoError(t, err)
	return system.UID
}

// TestSwappedKubeconfigIsNotConnectedTo (RS22): A kubeconfig that leads to another cluster than before is not
// connected. The test fails when it is connected, before or after a restart.
func TestSwappedKubeconfigIsNotConnectedTo(t *testing.T) {
	p := newPlace(t, "swapped")
	own, other := fleet.Shared().Cluster("user").Kubeconfig, fleet.Shared().Cluster("other").Kubeconfig
	p.keep("internal-admin-kubeconfig", own)
	c := p.guarded(p.kkp.Status.NamespaceName)
	before := p.live(c)
	if diff := cmp.Diff(userCluster(t, "user"), before.UserCluster); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	swap := func(kubeconfig []byte) {
		p.keep("internal-admin-kubeconfig", kubeconfig)
		c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	}
	swap(other)
	problem := p.refused(c, v1.ReasonClusterSwapped)
	way := fmt.Sprintf("%s=%s", v1.AnnotationConfirmCluster, userCluster(t, "other"))
	if !strings.Contains(problem.Message, way) {
		t.Errorf("message %q does not tell the way out, %s", problem.Message, way)
	}
	if err := call(t, before); err == nil {
		t.Error("the connection of before still goes out")
	}
	c = p.guarded(p.kkp.Status.NamespaceName) // a restart
	p.refused(c, v1.ReasonClusterSwapped)

	swap(own)
	p.live(c)
	swap(other)
	p.refused(c, v1.ReasonClusterSwapped)
	p.kkp.Annotations = map[string]string{v1.AnnotationConfirmCluster: string(userCluster(t, "user"))}
	p.refused(c, v1.ReasonClusterSwapped)
	p.kkp.Annotations[v1.AnnotationConfirmCluster] = string(userCluster(t, "other"))
	now := p.live(c)
	if now.UserCluster != userCluster(t, "other") || now.Origin != p.kkp.UID {
		t.Errorf("after it was confirmed, the identity is %s and the origin %s", now.UserCluster, now.Origin)
	}
	swap(own)
	p.refused(c, v1.ReasonClusterSwapped)
}

// TestClusterThatComesBackKeepsItsOrigin fails when a Cluster that is recreated with another UID counts as a
// different one, or when one with another user cluster counts as the previous one.
func TestClusterThatComesBackKeepsItsOrigin(t *testing.T) {
	p := newPlace(t, "returning")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	first := p.kkp.UID
	p.live(p.guarded(p.kkp.Status.NamespaceName))

	p.kkp.UID = "another"
	c := p.guarded(p.kkp.Status.NamespaceName)
	if origin, err := c.Origin(t.Context(), Describe(p.kkp).Ref); err != nil || origin != first {
		t.Errorf("before it is connected to, the origin is %q, %v", origin, err)
	}
	if origin := p.live(c).Origin; origin != first {
		t.Errorf("over the same user cluster the origin is %q", origin)
	}
	p.kkp.UID = "third"
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("other").Kubeconfig)
	c = p.guarded(p.kkp.Status.NamespaceName)
	if origin := p.live(c).Origin; origin != "third" {
		t.Errorf("over another user cluster the origin is %q", origin)
	}
	if origin, err := c.Origin(t.Context(), Describe(p.kkp).Ref); err != nil || origin != "third" {
		t.Errorf("after it was connected to, the origin is %q, %v", origin, err)
	}
}

// TestUserClusterOfBeforeHasItsOriginAgain fails when a user cluster loses the origin of its installations because
// the name's kubeconfig led elsewhere meanwhile, by mistake or because an API server lied, with the next Cluster of
// the name or with the same, before or after a restart.
func TestUserClusterOfBeforeHasItsOriginAgain(t *testing.T) {
	const own, other = "own", "other"
	type visit struct{ cluster, found, confirmed, origin string }
	for _, test := range []struct {
		why    string
		visits []visit
	}{
		{"the next Cluster of the name began elsewhere", []visit{
			{"first", own, "", "first"}, {"second", other, "", "second"}, {"third", own, "", "first"}, {"fourth", other, "", "second"},
		}},
		{"and was confirmed on the own one", []visit{
			{"first", own, "", "first"}, {"second", other, "", "second"}, {"second", own, own, "first"},
		}},
		{"objects were restored into a new one, and it went back", []visit{
			{"first", own, "", "first"}, {"first", other, other, "first"}, {"first", own, own, "first"},
		}},
	} {
		t.Run(test.why, func(t *testing.T) {
			kept := bond{}
			for _, one := range test.visits {
				next, err := kept.follow(target.Ref{Name: "one", UID: types.UID(one.cluster)}, types.UID(one.found), one.confirmed)
				if err != nil || next.origin != types.UID(one.origin) {
					t.Fatalf("Cluster %q over user cluster %q: origin %q, %v; want %q", one.cluster, one.found, next.origin, err, one.origin)
				}
				kept = bondOf(&corev1.ConfigMap{Data: next.data()})
			}
		})
	}
	kept := bond{}
	for n := range 3 * maximumPrevious {
		next, err := kept.follow(target.Ref{UID: types.UID(fmt.Sprint("c", n))}, types.UID(fmt.Sprint("u", n)), "")
		if err != nil || len(next.previous) > maximumPrevious {
			t.Fatalf("%d user clusters of before are kept, %v", len(next.previous), err)
		}
		kept = next
	}
}

// TestUserClusterHasOneCluster fails when a second Cluster over a user cluster is connected, or hinders the first, or
// stays refused after the first is gone.
func TestUserClusterHasOneCluster(t *testing.T) {
	first, second := newPlace(t, "had-first"), newPlace(t, "came-later")
	for _, p := range []*place{first, second} {
		p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	}
	namespace := first.kkp.Status.NamespaceName
	first.live(first.guarded(namespace, first.kkp, second.kkp))
	problem := second.refused(second.guarded(namespace, first.kkp, second.kkp), v1.ReasonClusterShared)
	if strings.Contains(problem.Message, first.kkp.Name) {
		t.Errorf("message %q names another tenant's Cluster", problem.Message)
	}
	second.kkp.Annotations = map[string]string{v1.AnnotationConfirmCluster: string(userCluster(t, "user"))}
	second.refused(second.guarded(namespace, first.kkp, second.kkp), v1.ReasonClusterShared)
	first.live(first.guarded(namespace, first.kkp, second.kkp))
	second.live(second.guarded(namespace, second.kkp))
}

// failing is a seed on which writes fail.
type failing struct{ client.Client }

func (failing) Create(context.Context, client.Object, ...client.CreateOption) error {
	return apierrors.NewInternalError(errors.New("no"))
}

// TestNothingIsConnectedToWithoutARecord fails when a user cluster is connected before its identity is recorded.
func TestNothingIsConnectedToWithoutARecord(t *testing.T) {
	p := newPlace(t, "unrecorded")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c := p.connections()
	c.UseIdentities(NewIdentities(failing{p.seed}, p.seed, existing{}, p.kkp.Status.NamespaceName))
	problem := p.refused(c, v1.ReasonClusterNotReady)
	expect.Eventually(t, expect.Patience, func() error {
		problem = p.refused(c, v1.ReasonClusterNotReady)
		if !strings.Contains(problem.Message, "can't be read or recorded") {
			return errors.New(problem.Message)
		}
		return nil
	})
}

// TestUserClusterThatDoesNotReportItsIdentity fails when an API server that does not return its identity is trusted, or
// when its answer is read regardless of its size.
func TestUserClusterThatDoesNotReportItsIdentity(t *testing.T) {
	const good = `{"metadata":{"uid":"0d0f7e0b-2f0a-4f5e-9c53-0a8d3f6b1a11"}}`
	for _, test := range []struct {
		why, answer, reason string
		status              int
	}{
		{why: "a UID", answer: good, status: http.StatusOK},
		{why: "no such namespace", status: http.StatusNotFound, answer: "{}", reason: v1.ReasonClusterNotReady},
		{why: "not allowed", status: http.StatusForbidden, answer: "{}", reason: v1.ReasonKubeconfigInvalid},
		{why: "no JSON", status: http.StatusOK, answer: "hello", reason: v1.ReasonClusterMisbehaves},
		{why: "no UID", status: http.StatusOK, answer: `{"metadata":{}}`, reason: v1.ReasonClusterMisbehaves},
		{why: "a UID of another length", status: http.StatusOK, answer: `{"metadata":{"uid":"x"}}`, reason: v1.ReasonClusterMisbehaves},
		{why: "a UID of 36 characters that is no label", status: http.StatusOK, reason: v1.ReasonClusterMisbehaves,
			answer: `{"metadata":{"uid":"0d0f7e0b,2f0a,4f5e,9c53,0a8d3f6b1a11"}}`},
		{why: "a long answer", status: http.StatusOK, reason: v1.ReasonClusterMisbehaves,
			answer: `{"metadata":{"labels":{"x":"` + strings.Repeat("x", 8<<20) + `"},"uid":"0d0f7e0b-2f0a-4f5e-9c53-0a8d3f6b1a11"}}`},
	} {
		t.Run(test.why, func(t *testing.T) {
			greeted := foreign(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != kubeSystemPath {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.answer)
			})
			found, err := greeted.userCluster(t.Context())
			switch {
			case test.reason == "":
				if err != nil || found != "0d0f7e0b-2f0a-4f5e-9c53-0a8d3f6b1a11" {
					t.Errorf("got %q, %v", found, err)
				}
			case err == nil || (&connector{}).greetingProblem(err).Reason != test.reason:
				t.Errorf("got %v, want reason %s", err, test.reason)
			}
		})
	}
}

// TestUserClusterIsComparedWithEachLook fails when a user cluster that changes behind the same address and
// credentials is written to after the next visit.
func TestUserClusterIsComparedWithEachLook(t *testing.T) {
	const own, other = "0d0f7e0b-2f0a-4f5e-9c53-0a8d3f6b1a11", "7a1f7e0b-2f0a-4f5e-9c53-0a8d3f6b1a11"
	var uid atomic.Value
	uid.Store(own)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version":
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
		case kubeSystemPath:
			fmt.Fprintf(w, `{"metadata":{"uid":%q}}`, uid.Load())
		case "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[]}`)
		case "/api/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
		default:
			t.Errorf("asked for %s", r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	p := newPlace(t, "replaced")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	p.keep("internal-admin-kubeconfig", fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]}`, server.URL, base64.StdEncoding.EncodeToString(authority)))
	c := p.guarded(p.kkp.Status.NamespaceName)
	connection := p.live(c)
	uid.Store(other)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	p.refused(c, v1.ReasonClusterSwapped)
	if _, err := connection.Secrets.Secrets("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a call went to the other one")
	}
	uid.Store(own)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	p.live(c)
}

// TestKnownUserClusterCostsNoCall: A known bond costs no call: there are no clients here. The test fails when it is
// read, or written, again.
func TestKnownUserClusterCostsNoCall(t *testing.T) {
	bonds := NewIdentities(nil, nil, existing{}, "platform")
	bonds.known["one"] = bond{cluster: "u", userCluster: "a", origin: "first", version: "1"}
	if origin, err := bonds.confirm(t.Context(), target.Ref{Name: "one", UID: "u"}, "a", ""); err != nil || origin != "first" {
		t.Errorf("%q, %v", origin, err)
	}
}
