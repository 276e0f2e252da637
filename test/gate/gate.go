package gate

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Call is one request of a client.
type Call struct {
	// Who is the client: the name that Config or Kubeconfig was asked for.
	Who string
	// Method and Path are those of HTTP; the query is left out.
	Method, Path string
	// Number tells a call from all others of its gate.
	Number int64
	// Body of a call that Writes, where its guard has Before.
	Body []byte
}

// Writes says whether the call changes something that lasts. Events are for people and nothing depends on them, and
// reviews are questions.
func (c Call) Writes() bool {
	switch c.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !strings.Contains(c.Path, "/events") && !strings.HasSuffix(c.Path, "reviews")
	}
	return false
}

// Guard sees every call of a client. Its functions may block, and are called from many goroutines; Before and After cut the connection
// where they return false. A nil one lets everything pass.
type Guard struct {
	// Before is asked before a call reaches the API server.
	Before func(Call) bool
	// Instead may answer a call in the API server's place, with an object in JSON; nil from it: the API server does.
	Instead func(Call) []byte
	// After is asked once the API server has answered a call that Writes, before the client gets the answer.
	After func(Call) bool
	// Answered gets the HTTP status code that the client of a call that Writes got, and of no call that it gave up, or that was cut.
	Answered func(call Call, code int)
}

// Gate is a proxy in front of an API server.
type Gate struct {
	name    string
	address string
	ca      []byte
	secured *tls.Config
	forward *httputil.ReverseProxy

	mutex  sync.Mutex
	server *http.Server
	guards map[string]Guard
	counts map[string]Counts
	number int64
}

// Counts are the calls of one client.
type Counts struct{ Reads, Writes int }

// New opens a gate in front of a cluster; it is closed with the test.
func New(t testing.TB, cluster *fleet.Cluster) *Gate {
	t.Helper()
	authority, err := fleet.NewAuthority("trellis-gate")
	if err != nil {
		t.Fatal(err)
	}
	secured, err := authority.TLS("gate")
	if err != nil {
		t.Fatal(err)
	}
	forward, err := forwarder(cluster)
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{
		name: cluster.Name, ca: authority.PEM, secured: secured, forward: forward,
		guards: map[string]Guard{}, counts: map[string]Counts{},
	}
	listener, err := fleet.Listen()
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	g.serve(listener)
	t.Cleanup(g.Shut)
	return g
}

// forwarder sends requests on with the cluster's own credentials.
func forwarder(cluster *fleet.Cluster) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(cluster.URL())
	if err != nil {
		return nil, fmt.Errorf("reading the address of cluster %q: %w", cluster.Name, err)
	}
	transport, err := rest.TransportFor(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("making the transport to cluster %q: %w", cluster.Name, err)
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}, nil
}

func (g *Gate) serve(listener net.Listener) {
	server := &http.Server{
		Handler: http.HandlerFunc(g.pass), TLSConfig: g.secured, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	g.mutex.Lock()
	g.server = server
	g.mutex.Unlock()
	go func() { _ = server.ServeTLS(listener, "", "") }()
}

// Config leads a client of that name through the gate.
func (g *Gate) Config(who string) *rest.Config {
	return &rest.Config{
		Host: "https://" + g.address, BearerToken: who, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: g.ca},
	}
}

// Kubeconfig is Config as a file.
func (g *Gate) Kubeconfig(t testing.TB, who string) []byte {
	t.Helper()
	config := g.Config(who)
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{g.name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{who: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{g.name: {Cluster: g.name, AuthInfo: who}},
		CurrentContext: g.name,
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Watch has a guard see the calls of a client from now on; the zero Guard sees none.
func (g *Gate) Watch(who string, guard Guard) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.guards[who] = guard
}

// Counts are the calls of a client that reached the gate so far.
func (g *Gate) Counts(who string) Counts {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.counts[who]
}

// Shut refuses connections and cuts those there are.
func (g *Gate) Shut() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	_ = g.server.Close()
}

// Open takes connections again on the port of before.
func (g *Gate) Open(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.address)
	if err != nil {
		return fmt.Errorf("opening the gate of cluster %q: %w", g.name, err)
	}
	g.serve(listener)
	return nil
}

// pass takes one request through.
func (g *Gate) pass(w http.ResponseWriter, r *http.Request) {
	call := Call{
		Who: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Method: r.Method, Path: r.URL.Path,
	}
	guard := g.see(&call)
	if guard.Before != nil {
		if err := call.read(r); err != nil || !guard.Before(call) {
			panic(http.ErrAbortHandler)
		}
	}
	if guard.Instead != nil {
		if content := guard.Instead(call); content != nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content)
			return
		}
	}
	if !call.Writes() || guard.After == nil && guard.Answered == nil {
		g.forward.ServeHTTP(w, r)
		return
	}
	answer, through := httptest.NewRecorder(), r
	if guard.After != nil { // it is asked also when the client is gone
		through = r.WithContext(context.WithoutCancel(r.Context()))
	}
	g.forward.ServeHTTP(answer, through)
	if guard.After != nil && !guard.After(call) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, err := w.Write(answer.Body.Bytes())
	if err == nil && r.Context().Err() == nil && guard.Answered != nil {
		guard.Answered(call, answer.Code)
	}
}

// read the body of a call that Writes, and leave it to be read again.
func (c *Call) read(r *http.Request) (err error) {
	if !c.Writes() || r.Body == nil {
		return nil
	}
	c.Body, err = io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(c.Body))
	return err
}

func (g *Gate) see(call *Call) Guard {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.number++
	call.Number = g.number
	counts := g.counts[call.Who]
	if call.Writes() {
		counts.Writes++
	} else {
		counts.Reads++
	}
	g.counts[call.Who] = counts
	return g.guards[call.Who]
}
