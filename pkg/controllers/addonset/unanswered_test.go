package addonset_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// TestAWriteWithoutAnAnswerIsAskedForAndNotRepeated: A write whose answer is lost may have arrived or not: the
// controller asks before it writes again, so no installation moves twice, also while the cache is stale. The test
// fails when write.go does not note the failed call (the update, and the deletion, are sent again), and when a noted
// one is never resolved.
func TestAWriteWithoutAnAnswerIsAskedForAndNotRepeated(t *testing.T) {
	for name, happen := range map[string]struct {
		// change causes a write of an installation, method is its method.
		method string
		change func(w *world, of *v1.AddonSet)
		done   func(w *world, of *v1.AddonSet)
	}{
		"a new version": {
			method: http.MethodPatch,
			change: func(w *world, _ *v1.AddonSet) { w.offers("web", "1.0.0", "1.1.0") },
			done: func(w *world, of *v1.AddonSet) {
				w.says(of, v1.ReasonComplete, current(2))
				if at := w.at("1.1.0"); !slices.Equal(at, w.names) {
					t.Errorf("%q have the new version", at)
				}
			},
		},
		"unselected": {
			method: http.MethodDelete,
			change: func(w *world, _ *v1.AddonSet) { w.clusters.Relabel(t, w.names[0], map[string]string{"world": ""}) },
			done:   func(w *world, of *v1.AddonSet) { w.says(of, v1.ReasonComplete, current(1)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 0, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
			w.offers("web", "1.0.0")
			of := w.write(w.set("tools", atOnce))
			line := &badLine{path: "/namespaces/" + standins.NamespaceOf(w.names[0]) + "/addoninstallations/web"}
			line.changed.L = &line.mutex
			w.start(line.over)
			t.Cleanup(line.mend)
			w.says(of, v1.ReasonComplete, current(2))

			line.fail()
			happen.change(w, of)
			expect.Eventually(t, expect.Patience, line.isAsked)
			w.steady(func() error { return line.wrote(happen.method) })
			line.mend()
			happen.done(w, of)
			if err := line.wrote(happen.method); err != nil {
				t.Error(err)
			}
		})
	}
}

// badLine loses the answers to writes of one installation while it fails, and delays all watch events meanwhile.
type badLine struct {
	path    string
	mutex   sync.Mutex
	changed sync.Cond
	fails   bool
	// calls of the installation since it failed.
	calls []string
}

func (b *badLine) fail() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.fails = true
}

func (b *badLine) mend() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.fails = false
	b.changed.Broadcast()
}

// isAsked is nil once the installation was read after a write.
func (b *badLine) isAsked() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.calls) < 2 {
		return fmt.Errorf("the calls are %q", b.calls)
	}
	return nil
}

// wrote is nil if there was one write, and then only reads.
func (b *badLine) wrote(method string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.calls[0] != method || slices.ContainsFunc(b.calls[1:], func(one string) bool { return one != http.MethodGet }) {
		return fmt.Errorf("the calls are %q, want one %s, and then reads", b.calls, method)
	}
	return nil
}

// over wraps a transport.
func (b *badLine) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if request.URL.Query().Get("watch") == "true" && strings.HasSuffix(request.URL.Path, "/addoninstallations") {
			answer.Body = heldBody{answer.Body, b}
			return answer, nil
		}
		if !strings.HasSuffix(request.URL.Path, b.path) {
			return answer, nil
		}
		b.mutex.Lock()
		defer b.mutex.Unlock()
		if !b.fails {
			return answer, nil
		}
		b.calls = append(b.calls, request.Method)
		if request.Method == http.MethodGet {
			return answer, nil
		}
		_ = answer.Body.Close()
		return nil, errors.New("the answer was lost")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// heldBody is a watch without events while its line fails.
type heldBody struct {
	io.ReadCloser
	line *badLine
}

// Read implements io.Reader.
func (h heldBody) Read(into []byte) (int, error) {
	count, err := h.ReadCloser.Read(into)
	h.line.mutex.Lock()
	defer h.line.mutex.Unlock()
	for h.line.fails {
		h.line.changed.Wait()
	}
	return count, err
}
