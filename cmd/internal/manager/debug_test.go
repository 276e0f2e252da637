package manager

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// TestTheLogLevelIsChangedWhileRunning: a manager runs, and is told to log more, and less. Red when the log goes on as before, when what is
// no level is taken, or when the endpoint has no profiles.
func TestTheLogLevelIsChangedWhileRunning(t *testing.T) {
	base, logger, log := serveDebug(t)
	for i, step := range []struct {
		put, answer string
		// code is what the answer to put has; told is whether a line of a verbosity comes then.
		code, verbosity int
		reported        bool
	}{
		{"", "changes, verbosity 0\n", 200, 0, true},
		{"", "changes, verbosity 0\n", 200, 1, false},
		{"details", "details, verbosity 1\n", 200, 1, true},
		{"4\n", "details, verbosity 4\n", 200, 4, true},
		{"7", "give a level: errors, changes, details, everything, or a verbosity of 0 to 6\n", 400, 4, true},
		{"loud", "give a level: errors, changes, details, everything, or a verbosity of 0 to 6\n", 400, 5, false},
		{strings.Repeat("9", 100), "the body of the request can't be read: send a level\n", 400, 5, false},
		{"everything", "everything, verbosity 6\n", 200, 6, true},
		{"errors", "errors\n", 200, 0, false},
	} {
		method := http.MethodGet
		if step.put != "" {
			method = http.MethodPut
		}
		if code, body := ask(t, method, base+"/debug/log-level", step.put); code != step.code || body != step.answer {
			t.Errorf("%s %q: %d %q, want %d %q", method, step.put, code, body, step.code, step.answer)
		}
		logger.V(step.verbosity).Info("a line", "number", i)
		if reported := strings.Contains(log.String(), fmt.Sprintf("number=%d\n", i)); reported != step.reported {
			t.Errorf("a line of verbosity %d after %.20q: told %t", step.verbosity, step.put, reported)
		}
	}
	logger.Error(io.EOF, "an error is told always")
	if !strings.Contains(log.String(), "an error is told always") {
		t.Error("an error is not told")
	}
	if code, body := ask(t, http.MethodGet, base+"/debug/pprof/goroutine?debug=1", ""); code != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("profile: %d %.100s", code, body)
	}
}

// TestDebugIsOnLoopbackAlone: red when an address is taken that others reach, or whose name may lead elsewhere.
func TestDebugIsOnLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:6060", ":6060", "[::]:6060", "10.0.0.1:6060", "localhost:6060", "127.0.0.1", "6060", ""} {
		var flags Flags
		set := flag.NewFlagSet("manager", flag.ContinueOnError)
		flags.Register(set)
		if err := set.Parse(append(quietly(), "--debug-bind-address="+address)); err != nil {
			t.Fatal(err)
		}
		_, err := flags.New(rest.CopyConfig(fleet.Shared().Cluster(bare).Config), "lease", cache.Options{})
		if refused := (&NotOnLoopbackError{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "127.0.0.1:6060") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestDebugAnswersLoopbackNamesAlone: a page whose name was rebound to loopback reaches a port that is forwarded there. Red when it is answered.
func TestDebugAnswersLoopbackNamesAlone(t *testing.T) {
	handler := debugHandler(&slog.LevelVar{})
	for host, code := range map[string]int{
		"127.0.0.1:6060": 200, "[::1]:6060": 200, "localhost:6060": 200, "localhost": 200, "127.0.0.2": 200, "[::1]": 200,
		"evil.example.com:6060": 403, "localhost.evil.example.com": 403, "10.0.0.1:6060": 403, "[2001:db8::1]:6060": 403, "": 403, "127.0.0.1.evil.example.com": 403,
	} {
		for _, path := range []string{"/debug/log-level", "/debug/pprof/cmdline"} {
			request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), httptest.NewRecorder()
			request.Host = host
			handler.ServeHTTP(answer, request)
			if answer.Code != code || code == 403 && !strings.Contains(answer.Body.String(), "use localhost or a loopback address") {
				t.Errorf("host %q, %s: %d %.100s", host, path, answer.Code, answer.Body)
			}
		}
	}
}

// TestAProfileDoesNotDelayTheEnd: red when the end waits for a profile of an hour.
func TestAProfileDoesNotDelayTheEnd(t *testing.T) {
	var level slog.LevelVar
	listener, err := fleet.Listen()
	if err != nil {
		t.Fatal(err)
	}
	served, begun := debugServer(listener, &level), make(chan struct{})
	answering := served.Server.Handler
	served.Server.Handler = http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		close(begun)
		answering.ServeHTTP(writer, request)
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- served.Start(ctx) }()
	asking, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	request, err := http.NewRequestWithContext(asking, http.MethodGet, "http://"+listener.Addr().String()+"/debug/pprof/profile?seconds=3600", nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-begun
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the end waits for a profile")
	}
	giveUp()
	<-asked
}

// serveDebug starts a manager, and gives the root of its debug endpoint, and its log.
func serveDebug(t *testing.T) (base string, logger logr.Logger, log *lines) {
	t.Helper()
	address := freeAddress(t, "[::1]:0")
	log = &lines{}
	serve(t, rest.CopyConfig(fleet.Shared().Cluster(bare).Config), func(flags *Flags) { logger = flags.loggerTo(log) },
		"--debug-bind-address="+address)
	expect.Eventually(t, expect.Patience, func() error {
		_, _, err := get(t, http.DefaultClient, "http://"+address+"/debug/log-level", "")
		return err
	})
	return "http://" + address, logger, log
}

func ask(t *testing.T, method, address, body string) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
