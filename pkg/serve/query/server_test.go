package query_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/trellis-addons/trellis/test/fleet"
)

// talk sends raw bytes over TLS and gives the first line that comes back.
func (w *world) talk(settings *tls.Config, text string) (string, error) {
	settings.RootCAs = w.browser.Transport.(*http.Transport).TLSClientConfig.RootCAs
	dialer := tls.Dialer{Config: settings}
	connection, err := dialer.DialContext(w.t.Context(), "tcp", w.endpoint.Address())
	if err != nil {
		return "", err
	}
	defer connection.Close()
	// The server may answer and close before it has read everything.
	_, _ = io.WriteString(connection, text)
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSpace(line), err
}

func TestConnections(t *testing.T) {
	w := newWorld(t)
	w.start()
	request := func(header string) string {
		return "GET /openapi.json HTTP/1.1\r\nHost: x\r\n" + header + "\r\nConnection: close\r\n\r\n"
	}
	for _, test := range []struct{ why, text, want string }{
		{"a plain request", request("A: b"), "HTTP/1.1 200 OK"},
		{"headers of 12 KiB", request("A: " + strings.Repeat("b", 12<<10)), "HTTP/1.1 200 OK"},
		{"headers of 64 KiB", request("A: " + strings.Repeat("b", 64<<10)), "HTTP/1.1 431 Request Header Fields Too Large"},
		{"no HTTP", "hello\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		{"two lengths", request("Content-Length: 1\r\nContent-Length: 2"), "HTTP/1.1 400 Bad Request"},
		{"a length and chunks", request("Content-Length: 1\r\nTransfer-Encoding: chunked"), "HTTP/1.1 400 Bad Request"},
	} {
		if got, err := w.talk(&tls.Config{}, test.text); got != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.why, got, err, test.want)
		}
	}
	if _, err := w.talk(&tls.Config{MaxVersion: tls.VersionTLS11}, request("A: b")); err == nil {
		t.Error("TLS 1.1 is served")
	}
	settings := &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	if got, err := w.talk(settings, request("A: b")); got != "HTTP/1.1 200 OK" {
		t.Errorf("one who knows HTTP/2 gets %q (%v)", got, err)
	}
	plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.endpoint.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = io.WriteString(plain, request("Authorization: Bearer secret"))
	answer, err := io.ReadAll(plain)
	if err != nil || strings.Contains(string(answer), "200 OK") {
		t.Errorf("without TLS: %q, %v", answer, err)
	}
}

// TestNothingShowsTokens looks for tokens in logs and metrics after every kind of failure.
func TestNothingShowsTokens(t *testing.T) {
	w := newWorld(t)
	var lines bytes.Buffer
	var mutex sync.Mutex
	w.logger = funcr.New(func(prefix, args string) {
		mutex.Lock()
		defer mutex.Unlock()
		fmt.Fprintln(&lines, prefix, args)
	}, funcr.Options{Verbosity: 9})
	w.layOutWeb()
	w.start()
	good := w.account("admin")
	w.grant("admin", w.catalogue, catalogues)
	paths := []string{"/api/v1/addons?k8sVersion=1.36.3", "/api/v1/addons?token=" + good, "/api/v1/namespaces/" + good + "/addons"}
	for _, token := range []string{good, good + "x", "canary-token"} {
		for _, path := range paths {
			w.get(path, token)
		}
	}
	fleet.Shared().Cluster("seed").StopServer()
	defer func() { // all other tests need it
		if err := fleet.Shared().Cluster("seed").StartServer(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	w.get(paths[0], "canary-token-2").expectStatus(t, "a new token while the API server is away", http.StatusServiceUnavailable)
	w.get(paths[0], good).expectStatus(t, "a known token while the API server is away", http.StatusOK)
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	mutex.Lock()
	defer mutex.Unlock()
	reported := lines.String() + fmt.Sprint(families)
	for _, secret := range []string{good[len(good)-20:], good[:20], "canary"} {
		if strings.Contains(reported, secret) {
			t.Errorf("%q is told:\n%s", secret, reported)
		}
	}
	if !strings.Contains(reported, "requests can't be answered now") {
		t.Errorf("the log does not say that the API server is away:\n%s", lines.String())
	}
}
