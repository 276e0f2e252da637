package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// call makes a call with a small answer.
func call(t *testing.T, c *Connection) error {
	t.Helper()
	_, err := c.Metadata.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	return err
}

func TestGetConnects(t *testing.T) {
	p := newPlace(t, "connects")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("and ends", func(t *testing.T) { // the cleanups run before the leak check
		p.t = t
		c := p.connections()
		var wakes atomic.Int32
		if _, err := c.Get(Describe(p.kkp), "a", func() { wakes.Add(1) }); err == nil {
			t.Fatal("connected before anything was asked")
		}
		expect.Eventually(t, expect.Patience, func() error {
			if wakes.Load() == 0 {
				return errors.New("not woken")
			}
			return nil
		})
		connection, err := c.Get(Describe(p.kkp), "a", func() { t.Error("woken while connected") })
		expect.NoError(t, err)
		if diff := cmp.Diff("v"+binaries.Older, connection.KubeVersion); diff != "" {
			t.Errorf("version (-want +got):\n%s", diff)
		}
		for _, want := range []string{"v1", "apps/v1", "apps/v1/Deployment"} {
			if !slices.Contains(connection.APIVersions(), want) {
				t.Errorf("capabilities miss %q", want)
			}
		}
		connection.Mapper.Reset()
		mapping, err := connection.Mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		if err != nil || mapping.Resource.Resource != "deployments" {
			t.Errorf("mapping: %v, %v", mapping, err)
		}
		if err := call(t, connection); err != nil {
			t.Error(err)
		}
		if _, err := connection.Secrets.Secrets("default").List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
			t.Error(err)
		}
		if connection.Config.BearerToken != "" || len(connection.Config.KeyData) > 0 {
			t.Error("the configuration shows credentials")
		}
	})
}

// TestDeletionsOfEveryKindPass: An API server may answer deletions with the object itself, if the kind or its
// finalizers require it. That is no misbehaviour. The test fails when clients accept protobuf for this answer.
func TestDeletionsOfEveryKindPass(t *testing.T) {
	p := newPlace(t, "deletes")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	connection := p.live(p.connections())
	held := func(kind, name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		object.SetName(name)
		object.SetFinalizers([]string{"test/held"})
		return object
	}
	account := held("ServiceAccount", "deleted")
	account.SetFinalizers(nil)
	background := metav1.DeletePropagationBackground
	for resource, object := range map[string]*unstructured.Unstructured{
		"serviceaccounts": account, "configmaps": held("ConfigMap", "deleted"), "namespaces": held("Namespace", "deletes-a-namespace"),
	} {
		where := schema.GroupVersionResource{Version: "v1", Resource: resource}
		var whole dynamic.ResourceInterface = connection.Dynamic.Resource(where)
		var about metadata.ResourceInterface = connection.Metadata.Resource(where)
		if resource != "namespaces" {
			whole, about = connection.Dynamic.Resource(where).Namespace("default"), connection.Metadata.Resource(where).Namespace("default")
		}
		if _, err := whole.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := about.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Errorf("%s: %v", resource, err)
		}
		if object.GetFinalizers() == nil {
			continue
		}
		freed := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := whole.Patch(t.Context(), object.GetName(), types.MergePatchType, freed, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestGetReadsTheFallbackSecret(t *testing.T) {
	p := newPlace(t, "fallback")
	p.keep("admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	p.live(p.connections())
}

func TestGetWithoutALiveCluster(t *testing.T) {
	user := fleet.Shared().Cluster("user")
	for _, test := range []struct {
		why, name, reason, message string
		kubeconfig                 []byte
		change                     func(*kkpv1.Cluster)
	}{
		{why: "no version yet", name: "unversioned", reason: v1.ReasonClusterNotReady, message: "no version",
			change: func(k *kkpv1.Cluster) { k.Status.Versions.ControlPlane = "" }},
		{why: "no health known", name: "unhealthy", reason: v1.ReasonClusterNotReady, message: "not up",
			change: func(k *kkpv1.Cluster) { k.Status.ExtendedHealth.APIServer = "" }},
		{why: "no Secret", name: "secretless", reason: v1.ReasonKubeconfigInvalid, message: "no Secret"},
		{why: "a kubeconfig that runs a program", name: "exec", reason: v1.ReasonKubeconfigInvalid, message: "users[].user.exec",
			kubeconfig: replaced(t, user.Kubeconfig, "token:", "exec: {command: sh}\n    token:")},
		{why: "a token that is none", name: "unauthorized", reason: v1.ReasonKubeconfigInvalid, message: "refuses",
			kubeconfig: replaced(t, user.Kubeconfig, "token: ", "token: x")},
		{why: "nothing listens", name: "refusing", reason: v1.ReasonClusterUnreachable, message: "refuses connections",
			kubeconfig: replaced(t, user.Kubeconfig, user.URL(), "https://127.0.0.1:1")},
		{why: "another server's certificate", name: "impostor", reason: v1.ReasonClusterUnreachable, message: "certificate",
			kubeconfig: replaced(t, user.Kubeconfig, "    server:", "    tls-server-name: elsewhere.example\n    server:")},
	} {
		t.Run(test.why, func(t *testing.T) {
			p := newPlace(t, test.name)
			if test.kubeconfig != nil {
				p.keep("internal-admin-kubeconfig", test.kubeconfig)
			}
			if test.change != nil {
				test.change(p.kkp)
			}
			problem := p.refused(p.connections(), test.reason)
			if !strings.Contains(problem.Message, test.message) {
				t.Errorf("got message %q, want %q in it", problem.Message, test.message)
			}
		})
	}
}

func replaced(t *testing.T, kubeconfig []byte, old, text string) []byte {
	t.Helper()
	if !strings.Contains(string(kubeconfig), old) {
		t.Fatalf("the kubeconfig has no %q", old)
	}
	return []byte(strings.Replace(string(kubeconfig), old, text, 1))
}

func TestBlackHoleHoldsNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer listener.Close() // accepted by the kernel, never answered
	user := fleet.Shared().Cluster("user")
	dead, alive := newPlace(t, "blackhole"), newPlace(t, "neighbour")
	deadKubeconfig := replaced(t, user.Kubeconfig, user.URL(), "https://"+listener.Addr().String())
	dead.keep("internal-admin-kubeconfig", deadKubeconfig)
	alive.keep("internal-admin-kubeconfig", user.Kubeconfig)
	c := dead.connections()
	var slowest time.Duration
	for range 1000 {
		begin := time.Now()
		if _, err := c.Get(Describe(dead.kkp), "test", nil); err == nil {
			t.Fatal("connected to a black hole")
		}
		slowest = max(slowest, time.Since(begin))
	}
	if slowest >= tlsTimeout { // a connection without a limit would wait that long
		t.Errorf("Get took %s", slowest)
	}
	for i := range 2 * int(expect.Patience/tlsTimeout) { // in sequence, they would take longer than the test waits for the neighbour
		hole := newPlace(t, fmt.Sprintf("blackhole-%d", i))
		hole.keep("internal-admin-kubeconfig", deadKubeconfig)
		if _, err := c.Get(Describe(hole.kkp), "test", nil); err == nil {
			t.Fatal("connected to a black hole")
		}
	}
	alive.live(c)
	problem := dead.refused(c, v1.ReasonClusterUnreachable)
	if diff := cmp.Diff("the API server does not answer in time", problem.Message); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestKilledServerComesBack(t *testing.T) {
	user := fleet.Shared().Cluster("user")
	p := newPlace(t, "killed")
	p.keep("internal-admin-kubeconfig", user.Kubeconfig)
	c := p.connections()
	connection := p.live(c)
	counted := func(want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, c.byReason()); diff != "" {
			t.Errorf("counted by reason (-want +got):\n%s", diff)
		}
	}
	counted(map[string]int{"": 1})

	user.StopServer()
	if err := call(t, connection); err == nil {
		t.Fatal("a killed server answered")
	}
	p.refused(c, v1.ReasonClusterUnreachable)
	counted(map[string]int{"": 0, v1.ReasonClusterUnreachable: 1})
	var known *NotConnectedError
	if err := call(t, connection); !errors.As(err, &known) {
		t.Errorf("a call to a dead cluster went out: %v", err)
	}
	var wakes atomic.Int32
	if _, err := c.Get(Describe(p.kkp), "waiting", func() { wakes.Add(1) }); err == nil {
		t.Fatal("connected to a killed server")
	}
	expect.NoError(t, user.StartServer(t.Context()))
	expect.Eventually(t, expect.Patience, func() error {
		if wakes.Load() == 0 {
			return errors.New("nobody was woken when the server came back")
		}
		return nil
	})
	if err := call(t, p.live(c)); err != nil {
		t.Error(err)
	}
	counted(map[string]int{"": 1})
}

func TestReport(t *testing.T) {
	kkp := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "reported", UID: "one"}}
	stranger := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "reported", UID: "another"}}
	for _, test := range []struct {
		why      string
		cluster  *kkpv1.Cluster
		err      error
		out, ask bool
	}{
		{"nothing failed", kkp, nil, false, false},
		{"an answer is an answer", kkp, fmt.Errorf("no: %w", corev1Conflict()), false, false},
		{"a programming error is not the cluster's", kkp, errors.New("oops"), false, false},
		{"a caller that gave up", kkp, fmt.Errorf("applying: %w", context.Canceled), false, false},
		{"a former Cluster's failure", stranger, io.ErrUnexpectedEOF, false, false},
		{"refused credentials may have been rotated", kkp, apierrors.NewUnauthorized("x"), false, true},
		{"the transport failed", kkp, fmt.Errorf("applying: %w", &net.OpError{Op: "dial", Err: errors.New("x")}), true, true},
		{"half an answer", kkp, fmt.Errorf("listing: %w", io.ErrUnexpectedEOF), true, true},
		{"no answer in time", kkp, fmt.Errorf("listing: %w", context.DeadlineExceeded), true, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := NewConnections(nil) // not started: no probe restores the connection
			k := c.newConnector(Describe(kkp).Ref)
			k.connection, k.problem = &Connection{link: &link{}}, nil
			c.connectors[anyOf(Describe(kkp).Ref)] = k
			c.Report(Describe(test.cluster).Ref, test.err)
			if out := k.problem != nil; out != test.out {
				t.Errorf("taken out: %v, want %v", out, test.out)
			}
			if asked := len(k.nudges) > 0; asked != test.ask {
				t.Errorf("asked for a visit: %v, want %v", asked, test.ask)
			}
		})
	}
}

func TestRotatedKubeconfig(t *testing.T) {
	p := newPlace(t, "rotated")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c := p.connections()
	old := p.live(c)

	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("other").Kubeconfig)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	expect.Eventually(t, expect.Patience, func() error {
		now, err := c.Get(Describe(p.kkp), "test", nil)
		if err == nil && now.KubeVersion != "v"+binaries.Newer {
			err = errors.New("still the old one")
		}
		return err
	})
	var closed *NotConnectedError
	if err := call(t, old); !errors.As(err, &closed) {
		t.Errorf("the old connection still works: %v", err)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.kkp.Status.NamespaceName, Name: "internal-admin-kubeconfig",
	}}
	expect.Delete(t, p.seed, secret)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	p.refused(c, v1.ReasonKubeconfigInvalid)
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	if diff := cmp.Diff("v"+binaries.Older, p.live(c).KubeVersion); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
}

// TestAKubeconfigThatCantBeUsedIsReportedOfAClusterThatIsNotUp: Where a tenant's program writes the status with the same
// kubeconfig, an unusable kubeconfig appears as "not up". The test fails when only the Cluster's own status is
// reported.
func TestAKubeconfigThatCantBeUsedIsReportedOfAClusterThatIsNotUp(t *testing.T) {
	p := newPlace(t, "masked")
	good := fleet.Shared().Cluster("user").Kubeconfig
	p.keep("internal-admin-kubeconfig", good)
	c := p.connections()
	p.live(c)
	p.kkp.Status.ExtendedHealth.APIServer = kkpv1.HealthDown
	p.refused(c, v1.ReasonClusterUnreachable)
	p.keep("internal-admin-kubeconfig", []byte("no kubeconfig"))
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	problem := p.refused(c, v1.ReasonKubeconfigInvalid)
	want := fmt.Sprintf("the kubeconfig Secret in namespace %q: kubeconfig ", p.kkp.Status.NamespaceName)
	if !strings.HasPrefix(problem.Message, want) {
		t.Errorf("got message %q, want %q before it", problem.Message, want)
	}
	p.keep("internal-admin-kubeconfig", good)
	c.Refresh(target.Ref{Namespace: p.kkp.Status.NamespaceName})
	p.refused(c, v1.ReasonClusterUnreachable)
	p.kkp.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	p.live(c)
}

func TestForget(t *testing.T) {
	p := newPlace(t, "forgotten")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c := p.connections()
	connection := p.live(c)
	another := Describe(p.kkp).Ref
	another.UID = "another"
	c.Forget(another)
	if err := call(t, p.live(c)); err != nil {
		t.Fatalf("another Cluster's end closed it: %v", err)
	}
	c.Forget(Describe(p.kkp).Ref)
	expect.Eventually(t, expect.Patience, func() error {
		var closed *NotConnectedError
		if err := call(t, connection); !errors.As(err, &closed) {
			return fmt.Errorf("a forgotten connection still works: %w", err)
		}
		return nil
	})
}

func TestUpgradedCluster(t *testing.T) {
	p := newPlace(t, "upgraded")
	p.keep("internal-admin-kubeconfig", fleet.Shared().Cluster("user").Kubeconfig)
	c := p.connections()
	before := p.live(c)
	p.kkp.Status.Versions.ControlPlane = binaries.Newer
	expect.Eventually(t, expect.Patience, func() error {
		now, err := c.Get(Describe(p.kkp), "test", nil)
		if err == nil && now == before {
			err = errors.New("the API server was not asked again")
		}
		return err
	})
}
