package fence

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// bench is a fence whose clocks the test moves, with the lock of a lease.
type bench struct {
	fence *Fence
	clock instant
	lock  resourcelock.Interface
	lease *lease
}

// lease takes every record, unless it is to fail; during is done while one is on its way.
type lease struct {
	resourcelock.Interface
	written []string
	failure error
	during  func()
}

func (l *lease) Identity() string { return "us" }
func (l *lease) Describe() string { return "kubermatic/lease" }

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	if l.failure == nil {
		l.written = append(l.written, record.HolderIdentity)
	}
	return l.failure
}

func newBench() *bench {
	b := &bench{fence: New(), clock: instant{day: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, lease: &lease{}}
	b.fence.now = func() instant { return b.clock }
	b.lock = b.fence.Lock(b.lease)
	return b
}

func (b *bench) pass(time time.Duration) {
	b.clock.steady += time
	b.clock.day = b.clock.day.Add(time)
}

// renew takes or renews the lease, for ten seconds.
func (b *bench) renew(t *testing.T) error {
	return b.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us", LeaseDurationSeconds: 10})
}

func (b *bench) expect(t *testing.T, holds bool, when string) {
	t.Helper()
	var fallen *FallenError
	if err := b.fence.Holds(); (err == nil) != holds || err != nil && !errors.As(err, &fallen) {
		t.Errorf("%s: %v, want the fence to hold: %t", when, err, holds)
	}
}

// RS40: A manager writes as long as its lease lasts, and no longer.
func TestTheFenceHoldsAsLongAsTheLease(t *testing.T) {
	b := newBench()
	b.pass(time.Hour)
	b.expect(t, true, "while nobody led")
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	b.pass(8 * time.Second)
	b.expect(t, true, "within the lease")
	b.lease.failure = errors.New("no answer")
	if err := b.renew(t); err == nil {
		t.Fatal("the renewal went well")
	}
	b.pass(time.Second)
	b.expect(t, false, "after the lease, and a renewal that failed")
	b.lease.failure = nil
	if err := b.renew(t); err == nil || len(b.lease.written) != 1 {
		t.Errorf("%v, %q written: a lease that is over is renewed", err, b.lease.written)
	}
	b.expect(t, false, "for good")
}

func TestTheLeaseCountsFromBeforeItsRenewalWasSent(t *testing.T) {
	b := newBench()
	b.lease.during = func() { b.pass(30 * time.Second) } // the process is stopped while the renewal is on its way
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	b.expect(t, false, "after a renewal that was sent half a minute ago")
}

func TestEitherClockEndsTheLease(t *testing.T) {
	for name, move := range map[string]func(*instant){
		"the machine slept":                 func(i *instant) { i.day = i.day.Add(time.Minute) },
		"the clock of the day was put back": func(i *instant) { i.steady += time.Minute; i.day = i.day.Add(-time.Hour) },
	} {
		b := newBench()
		if err := b.renew(t); err != nil {
			t.Fatal(err)
		}
		move(&b.clock)
		b.expect(t, false, name)
	}
}

func TestTheFenceFallsBeforeTheLeaseIsGivenUp(t *testing.T) {
	b := newBench()
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	b.lease.during = func() { b.expect(t, false, "while the lease is given up") }
	if err := b.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err == nil {
		t.Error("a lease that may be somebody else's by now is given up again")
	}
}

func TestAFenceThatFellEndsTheManager(t *testing.T) {
	b := newBench()
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Minute)
	b.expect(t, false, "after the lease")
	var fallen *FallenError
	if err := b.fence.Start(t.Context()); !errors.As(err, &fallen) {
		t.Errorf("ended with %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New().Start(ended); err != nil {
		t.Error(err)
	}
}

func TestOnlyReadsGoOutAfterTheFence(t *testing.T) {
	b := newBench()
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r.Method) }))
	defer server.Close()
	client := &http.Client{Transport: b.fence.Transport(server.Client().Transport)}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	call := func() {
		for _, method := range methods {
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if answer, err := client.Do(request); err == nil {
				_ = answer.Body.Close()
			}
		}
	}
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	call()
	b.pass(time.Minute)
	call()
	if got, want := strings.Join(seen, " "), strings.Join(append(methods, http.MethodGet), " "); got != want {
		t.Errorf("the server saw %q, want %q", got, want)
	}
}

// A process can be stopped between a call's last look and its bytes.
func TestNoByteOfACallThatWasBegunGoesOutAfterTheFence(t *testing.T) {
	b := newBench()
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	made, err := b.fence.Dial(func(context.Context, string, string) (net.Conn, error) { return far, nil })(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		buffer := make([]byte, 10)
		n, _ := near.Read(buffer)
		got <- string(buffer[:n])
	}()
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	if _, err := made.Write([]byte("begun")); err != nil || <-got != "begun" {
		t.Fatal(err)
	}
	b.pass(time.Minute)
	var fallen *FallenError
	if n, err := made.Write([]byte("ended")); n != 0 || !errors.As(err, &fallen) {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
}

func TestNoFenceHolds(t *testing.T) {
	var none *Fence
	if err := none.Holds(); err != nil {
		t.Error(err)
	}
	if near, far := net.Pipe(); none.Conn(near) != near {
		t.Error("wrapped for nothing")
		_ = far.Close()
	}
}
