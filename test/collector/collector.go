// Package collector is an OpenTelemetry collector for tests. It accepts traces over HTTP, stores their bytes, and can answer with
// errors. It reads them with OpenTelemetry's own types, and shows traces as trees.
package collector

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/expect"
)

// Collector is one on loopback, until the end of its test.
type Collector struct {
	// URL is its endpoint, without a path.
	URL string

	mutex    sync.Mutex
	answer   http.HandlerFunc
	messages [][]byte
	headers  []http.Header
}

// Start starts one that accepts everything.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	c.Answer(Accept)
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.URL = server.URL
	return c
}

// Accept is the answer of a collector that is well.
func Accept(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

// Answer is what the collector does with messages from now on. What it does not accept is kept, too.
func (c *Collector) Answer(answer http.HandlerFunc) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.answer = answer
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	message, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mutex.Lock()
	c.messages = append(c.messages, message)
	c.headers = append(c.headers, r.Header)
	answer := c.answer
	c.mutex.Unlock()
	answer(w, r)
}

// Messages are the bytes of all messages so far.
func (c *Collector) Messages() [][]byte {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([][]byte(nil), c.messages...)
}

// Headers are those of all messages so far.
func (c *Collector) Headers() []http.Header {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]http.Header(nil), c.headers...)
}

// Spans are those of all messages so far.
func (c *Collector) Spans(t testing.TB) []Span {
	t.Helper()
	var spans []Span
	for _, message := range c.Messages() {
		read, err := Read(message)
		expect.NoError(t, err)
		spans = append(spans, read...)
	}
	return spans
}

// Await waits until there are spans that a test looks for.
func (c *Collector) Await(t testing.TB, timeout time.Duration, found func([]Span) bool) []Span {
	t.Helper()
	var spans []Span
	expect.Eventually(t, timeout, func() error {
		spans = c.Spans(t)
		if !found(spans) {
			return fmt.Errorf("not among %d spans so far", len(spans))
		}
		return nil
	})
	return spans
}
