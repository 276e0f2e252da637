package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// clock is a clock that a test advances.
type clock struct{ passed atomic.Int64 }

var midnight = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func (c *clock) now() time.Time          { return midnight.Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// TestRetryAfterIsBounded (AC24): A host's Retry-After is parsed in each form, and counts for a limited time.
func TestRetryAfterIsBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 60 ": time.Minute, "600": 10 * time.Minute, "601": 10 * time.Minute,
		"315360000": 10 * time.Minute, "99999999999999999999999": 10 * time.Minute, "-5": 0, "soon": 0, "1.5": 0,
		"Fri, 02 Jan 2026 00:01:00 GMT": time.Minute, "Thu, 01 Jan 2026 00:00:00 GMT": 0, "Fri, 02 Jan 2036 00:00:00 GMT": 10 * time.Minute,
	} {
		if got := outbound.RetryAfter(text, midnight); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// retryOf is the wait that an error requests.
func retryOf(err error) time.Duration {
	var unavailable *fetch.UnavailableError
	if !errors.As(err, &unavailable) {
		return -1
	}
	return unavailable.RetryAfter
}

// TestHostsAreLeftAloneWhenTheyAsk (AC24): A host that requests a pause gets no request of any owner.
func TestHostsAreLeftAloneWhenTheyAsk(t *testing.T) {
	var status atomic.Int32
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "315360000") // ten years
		w.WriteHeader(int(status.Load()))
	}))
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		status.Store(int32(code))
		var passing clock
		from := network(t, outbound.Options{})
		from.SetClock(passing.now)
		ask := func() error {
			_, err := get(t.Context(), from, outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, server.URL)
			return err
		}
		before := len(server.Requests())
		if wait := retryOf(ask()); wait.Minutes() != 10 {
			t.Errorf("status %d: wait %s", code, wait)
		}
		passing.advance(9 * time.Minute)
		for range 100 {
			if wait := retryOf(ask()); wait.Minutes() != 1 {
				t.Fatalf("status %d: wait %s", code, wait)
			}
		}
		if seen := len(server.Requests()) - before; seen != 1 {
			t.Errorf("status %d: the server has seen %d requests, want 1", code, seen)
		}
		passing.advance(2 * time.Minute)
		status.Store(http.StatusOK)
		if err := ask(); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	}
}

// TestHostsOutOfReachAreLeftAlone (AC24): A host that can't be reached several times in a row gets no request for a
// time.
func TestHostsOutOfReachAreLeftAlone(t *testing.T) {
	const nowhere = "https://nowhere.example:1" // no server listens there, and no process gets that port
	looks := &names{answers: [][]string{{"127.0.0.1"}}}
	var passing clock
	from := network(t, outbound.Options{Resolver: looks})
	from.SetClock(passing.now)
	ask := func() time.Duration {
		_, err := get(t.Context(), from, outbound.Request{}, nowhere)
		return retryOf(err)
	}
	for i := range 3 {
		if wait := ask(); wait != 0 {
			t.Fatalf("attempt %d: %s", i, wait)
		}
	}
	for range 10 {
		if wait := ask(); wait.Seconds() != 5 {
			t.Fatalf("left alone for %s", wait)
		}
	}
	if tries := looks.looks.Load(); tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
	passing.advance(6 * time.Second)
	ask() // the fourth request fails, too
	if wait := ask(); wait.Seconds() != 10 {
		t.Errorf("then left alone for %s", wait)
	}
	for range 20 {
		passing.advance(61 * time.Second)
		ask()
	}
	if wait := ask(); wait.Seconds() != 60 {
		t.Errorf("at most for %s", wait)
	}
}

// TestDistrustIsNoOutage (AC24): A certificate that one reference distrusts does not affect the others.
func TestDistrustIsNoOutage(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	from := network(t, outbound.Options{})
	for range 5 {
		if _, err := get(t.Context(), from, outbound.Request{}, server.URL); retryOf(err) != 0 {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := get(t.Context(), from, outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, server.URL); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestAHostGetsFourRequestsAtATime (AC23): A host gets four requests at a time.
func TestAHostGetsFourRequestsAtATime(t *testing.T) {
	var now, most atomic.Int32
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		current := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); current > old && !most.CompareAndSwap(old, current); old = most.Load() {
		}
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	from := network(t, outbound.Options{Timeout: time.Hour, IdleTimeout: time.Hour})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := get(t.Context(), from, outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, server.URL); err != nil {
				t.Errorf("get: %v", err)
			}
		})
	}
	for range 4 {
		<-arrived
	}
	select { // no request arrives here if the limit holds; a fifth one has time to arrive
	case <-arrived:
		t.Error("a fifth request came while four were under way")
	case <-time.After(500 * time.Millisecond):
	}
	close(release)
	all.Wait()
	if most.Load() != 4 {
		t.Errorf("the server had %d requests at a time, want 4", most.Load())
	}
}

func TestMirrorsOfWhatAnIndexNames(t *testing.T) {
	mirror := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	var mirrors fetch.Mirrors
	if err := mirrors.Set("https://files.example.com/=" + mirror.URL + "/files/"); err != nil {
		t.Fatal(err)
	}
	origin, err := url.Parse("https://charts.example.com")
	if err != nil {
		t.Fatal(err)
	}
	request := outbound.Request{
		OtherHosts: true, Origin: origin, Credentials: fetch.Credentials{CA: mirror.CA, Username: "u", Password: "canary"},
	}
	got, err := get(t.Context(), network(t, outbound.Options{Mirrors: mirrors}), request, "https://files.example.com/x.tgz")
	if err != nil || got != "/files/x.tgz" {
		t.Errorf("got %q, %v", got, err)
	}
	redirecting := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://files.example.com/y.tgz", http.StatusFound)
	}))
	request.Credentials.CA = []byte(string(mirror.CA) + string(redirecting.CA))
	got, err = get(t.Context(), network(t, outbound.Options{Mirrors: mirrors}), request, redirecting.URL)
	if err != nil || got != "/files/y.tgz" {
		t.Errorf("after a redirect: got %q, %v", got, err)
	}
	for _, seen := range mirror.Requests() {
		if strings.Contains(fmt.Sprint(seen.Header), "Authorization") {
			t.Error("the mirror got credentials that are not for it")
		}
	}
}

// TestTimeThatAnotherHostSpentIsNoOutage (AC24): A request with the rest of an operation's time does not count as a
// failure of its host: a slow server that then redirects to the host would otherwise block it for all owners. The
// test fails when such ends are counted.
func TestTimeThatAnotherHostSpentIsNoOutage(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := fetchtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			asked <- struct{}{}
			<-r.Context().Done()
		}
	}))
	from := network(t, outbound.Options{})
	request := outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}
	for range 5 {
		ctx, end := context.WithCancelCause(t.Context())
		go func() {
			<-asked
			end(context.DeadlineExceeded) // as an operation ends
		}()
		if _, err := get(ctx, from, request, server.URL+"/late"); retryOf(err) != 0 {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := get(t.Context(), from, request, server.URL); err != nil {
		t.Errorf("got %v", err)
	}
}
