package upstream_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
	"github.com/trellis-addons/trellis/test/expect"
)

// target is a client of a server with this handler.
func target(t *testing.T, handler http.HandlerFunc) *upstream.Target {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	made, err := upstream.NewTarget("seed one", config.Server{Server: server.URL, CA: string(authority)}, upstream.Options{
		Now: time.Now, Count: func(string, string) {},
	})
	expect.NoError(t, err)
	t.Cleanup(func() {
		made.Close()
		server.Close()
	})
	return made
}

func says(text string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) { _, _ = writer.Write([]byte(text)) }
}

// Red when an answer of a hostile server takes memory without a bound, is followed to another server, or fails the program.
func TestHostileAnswersAreErrors(t *testing.T) {
	strangers := 0
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers++ }))
	defer stranger.Close()
	for why, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"a large answer":  {says(`{"name":"` + strings.Repeat("a", 17<<20) + `"}`), "MiB"},
		"many values":     {says(`{"sets":[` + strings.Repeat("{},", 500_000) + `{}]}`), "values"},
		"deep lists":      {says(`{"sets":` + strings.Repeat("[", 100_000)), "can't be read"},
		"no JSON":         {says("<html>canary()</html>"), "can't be read"},
		"a list":          {says("[]"), "can't be read"},
		"another address": {http.RedirectHandler(stranger.URL, http.StatusTemporaryRedirect).ServeHTTP, "status 307"},
		"long headers": {func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("Warning", strings.Repeat("a", 100<<10))
		}, "connection failed"},
		"a large refusal": {func(writer http.ResponseWriter, _ *http.Request) {
			writer.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = writer.Write([]byte(`{"message":"canary","details":{"causes":[` + strings.Repeat("{},", 1<<20) + `{}]}}`))
		}, "status 422"},
	} {
		t.Run(why, func(t *testing.T) {
			seed := &upstream.Seed{Name: "one", Query: target(t, test.handler)}
			err := seed.Ask(t.Context(), "token", nil, &upstream.Sets{}, "sets")
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "canary") || len(err.Error()) > 5000 {
				t.Errorf("got %.300v, want %q", err, test.says)
			}
		})
	}
	if strangers > 0 {
		t.Error("a token was sent to another server")
	}
}

// Red when a server that begins answers, and never ends one, is called again and again.
func TestAnAnswerThatNeverEndsCountsAsNone(t *testing.T) {
	calls := make(chan struct{}, 10)
	hangs := target(t, func(writer http.ResponseWriter, request *http.Request) {
		calls <- struct{}{}
		_, _ = writer.Write([]byte("{"))
		_ = http.NewResponseController(writer).Flush()
		<-request.Context().Done()
	})
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := hangs.Call(ctx, "token", upstream.Request{Path: []string{"api"}})
		cancel()
		if err == nil {
			t.Fatal("it answers")
		}
	}
	if len(calls) != 3 {
		t.Errorf("it was called %d times", len(calls))
	}
}

// Red when a write without a name, as an answer without one leads to, changes a whole collection.
func TestNoWriteChangesACollection(t *testing.T) {
	called := false
	server := target(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, method := range []string{http.MethodDelete, http.MethodPatch, http.MethodPut} {
		object := upstream.Object{Resource: "addoninstallations", Namespace: "cluster-a"}
		if _, err := server.Write(t.Context(), "token", upstream.Write{Object: object, Method: method}); err == nil || called {
			t.Errorf("%s of a collection: %v", method, err)
		}
	}
}

// Red when a path leads elsewhere than to the object that it names.
func TestPathsAreEscaped(t *testing.T) {
	seen := ""
	server := target(t, func(writer http.ResponseWriter, request *http.Request) {
		seen = request.RequestURI
		_, _ = writer.Write([]byte("{}"))
	})
	for name, want := range map[string]string{
		"a?b=c": "/api/a%3Fb=c", "a#b": "/api/a%23b", "a%2Fb": "/api/a%252Fb", `a\b`: "/api/a%5Cb", "a b": "/api/a%20b",
		"..": "", ".": "", "": "", "a/../b": "",
	} {
		seen = ""
		_, err := server.Call(t.Context(), "token", upstream.Request{Path: []string{"api", name}})
		if seen != want || (err == nil) != (want != "") {
			t.Errorf("%q leads to %q: %v", name, seen, err)
		}
	}
}
