package ocm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/test/fleet"
)

// hub is how agents reach the seed: a proxy, which sees who calls and what is answered, and leaves credentials as they are.
type hub struct {
	address access.Hub

	mutex sync.Mutex
	calls []answered
	// life of the calls under way; cut ends it.
	life context.Context
	cut  context.CancelFunc
}

// answered is a call, by the bearer of a token.
type answered struct {
	token, method, uri string
	code               int
	at                 time.Time
}

func (a answered) String() string {
	return fmt.Sprintf("%s %s %s: %d", a.at.Format(time.TimeOnly), a.method, a.uri, a.code)
}

func (a answered) isRefused() bool {
	return a.code == http.StatusUnauthorized || a.code == http.StatusForbidden
}

// newHub opens a way to a cluster, until the end of the test.
func newHub(t *testing.T, cluster *fleet.Cluster) *hub {
	t.Helper()
	authority, err := fleet.NewAuthority("trellis-hub")
	if err != nil {
		t.Fatal(err)
	}
	secured, err := authority.TLS("hub")
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(cluster.Config))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := fleet.Listen()
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{address: access.Hub{Server: "https://" + listener.Addr().String(), CA: authority.PEM}}
	h.life, h.cut = context.WithCancel(context.Background())
	silent := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: silent, ModifyResponse: h.note,
		Rewrite:      func(request *httputil.ProxyRequest) { request.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{
		TLSConfig: secured, ReadHeaderTimeout: time.Minute, ErrorLog: silent,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, end := context.WithCancel(r.Context())
			defer end()
			defer context.AfterFunc(h.lives(), end)()
			forward.ServeHTTP(w, r.WithContext(ctx))
		}),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return h
}

func (h *hub) lives() context.Context {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.life
}

// cutAll ends all calls under way: whoever watches has to log in again.
func (h *hub) cutAll() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.cut()
	h.life, h.cut = context.WithCancel(context.Background())
}

func (h *hub) note(response *http.Response) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	request := response.Request
	h.calls = append(h.calls, answered{
		token:  strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "),
		method: request.Method, uri: request.URL.RequestURI(), code: response.StatusCode, at: time.Now(),
	})
	return nil
}

// seen are the calls that were answered so far.
func (h *hub) seen() []answered {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.calls)
}

// refused are those of these calls for which there was no right.
func refused(calls []answered) (found []answered) {
	return slices.DeleteFunc(slices.Clone(calls), func(one answered) bool { return !one.isRefused() })
}

var errNotUsed = errors.New("the agent has not used its token")

// uses is an error until a call with the token was let through.
func (h *hub) uses(token string) error {
	if slices.ContainsFunc(h.seen(), func(one answered) bool { return one.token == token && !one.isRefused() }) {
		return nil
	}
	return errNotUsed
}
