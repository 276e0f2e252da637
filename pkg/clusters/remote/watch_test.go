package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const watchedPath = "/apis/kubermatic.k8c.io/v1/namespaces/addon-catalogue/addonsets"

// answersWith are lines that an API server sends to a watch.
func answersWith(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;stream=watch")
		for _, line := range lines {
			_, _ = io.WriteString(w, line+"\n")
		}
	}
}

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":%q}}}`, kind, name, version)
}

// Red when an event is lost, or a watch that ended in order is a failure.
func TestAWatchReportsNamesUntilItEnds(t *testing.T) {
	var asked string
	c := clientOf(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + "?" + r.URL.RawQuery + " " + r.Header.Get("Accept") + " " + r.Header.Get("Authorization")
		answersWith(event("MODIFIED", "monitoring", "7"), event("DELETED", "logging", "8"), event("BOOKMARK", "", "9"))(w, r)
	})
	var got []Change
	if err := c.Watch(t.Context(), watchedPath, "6", time.Minute, func(change Change) { got = append(got, change) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Change{{"monitoring", "7"}, {"logging", "8"}, {"", "9"}}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if want := watchedPath + "?allowWatchBookmarks=true&resourceVersion=6&timeoutSeconds=60&watch=true " + metadataType + " Bearer " + canary; asked != want {
		t.Errorf("asked\n%s, want\n%s", asked, want)
	}
}

// Red when a stream is read beyond its limits, passes for JSON, or ends without an error that says what to do.
func TestWatchesAreBounded(t *testing.T) {
	for why, test := range map[string]struct {
		handler http.HandlerFunc
		is      func(error) bool
	}{
		"a line without an end": {is: IsMisbehaviour, handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			piece := strings.Repeat("x", mebi)
			for range 64 {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}},
		"events without an end": {is: IsMisbehaviour, handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 2 * watchEvents {
				if _, err := io.WriteString(w, event("MODIFIED", "a", "1")+"\n"); err != nil {
					return
				}
			}
		}},
		"no JSON":        {is: IsMisbehaviour, handler: answersWith("<html>")},
		"too deep":       {is: IsMisbehaviour, handler: answersWith(strings.Repeat("[", 200) + strings.Repeat("]", 200))},
		"a giant name":   {is: IsMisbehaviour, handler: answersWith(event("ADDED", strings.Repeat("a", 300), "1"))},
		"another type":   {is: IsMisbehaviour, handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }},
		"compacted":      {is: isA[*StaleError], handler: answersWith(`{"type":"ERROR","object":{"code":410}}`)},
		"compacted long": {is: isA[*StaleError], handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }},
		"forbidden": {is: isA[*WatchRefusedError], handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status"}`)
		}},
	} {
		t.Run(why, func(t *testing.T) {
			c := clientOf(t, Options{}, test.handler)
			if err := c.Watch(t.Context(), watchedPath, "1", time.Minute, func(Change) {}); err == nil || !test.is(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
