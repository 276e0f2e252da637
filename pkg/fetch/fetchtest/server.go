package fetchtest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
)

// Loopback are the addresses that a Network must allow to reach the servers of this package.
var Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// Server is a TLS server with its own certificate. It records its requests.
type Server struct {
	*httptest.Server
	// CA is the certificate to trust, PEM.
	CA []byte

	mu       sync.Mutex
	requests []Request
}

// Request is a recorded request.
type Request struct {
	Method, Path string
	Header       http.Header
}

// Serve starts a server, which ends with the test.
func Serve(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	server := &Server{}
	server.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.mu.Lock()
		server.requests = append(server.requests, Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone()})
		server.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients of these tests hang up on purpose
	server.StartTLS()
	server.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// Count counts the requests with that method and path.
func (s *Server) Count(method, path string) int {
	count := 0
	for _, seen := range s.Requests() {
		if seen.Method == method && seen.Path == path {
			count++
		}
	}
	return count
}
