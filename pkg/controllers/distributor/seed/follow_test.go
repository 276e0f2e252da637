package seed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// A seed may be away for long, and its API server answers with failures while it starts. Red when it waits for minutes once it is
// back, or when a seed that answers, and refuses, is asked over and over.
func TestALostSeedIsTriedAgainSoonerThanOneThatRefuses(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := &worker{Options: Options{Resync: 5 * time.Minute, CountEvery: time.Minute, Clock: clock}}
	reconcile := func(state State) time.Duration {
		pause := w.pause(state)
		clock.Step(pause)
		return pause
	}
	for range 60 {
		if pause := reconcile(State{Problem: "refused", away: true}); pause > 11*time.Second {
			t.Fatalf("a lost seed is left alone for %s", pause)
		}
	}
	for range 3 {
		if pause := reconcile(State{Problem: "forbidden"}); pause > 11*time.Second {
			t.Fatalf("one that comes back is left alone for %s", pause)
		}
	}
	var pause time.Duration
	for range 12 {
		pause = reconcile(State{Problem: "forbidden"})
	}
	if pause < 4*time.Minute {
		t.Errorf("one that refuses is tried again after %s", pause)
	}
	reconcile(State{Reached: true})
	if pause := reconcile(State{Problem: "forbidden"}); pause > 2*time.Second {
		t.Errorf("after a good pass the first wait is %s", pause)
	}
}

// Red when a seed whose watches break all the time is listed each time, when one whose watch stood for long has to wait, when its
// copies are not looked at meanwhile, or when a watch that breaks again puts a list off that is waited for.
func TestASeedWhoseWatchesBreakIsListedLessAndLess(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := &worker{Options: Options{Clock: clock}, stir: make(chan struct{}, 1)}
	for i, want := range []time.Duration{gatherSets, time.Second, 2 * time.Second, 4 * time.Second} {
		if wait := w.noteBreak(); wait != want || !w.listAgainAt.Equal(clock.Now().Add(want)) {
			t.Errorf("after %d times it waits %s, until %s; want %s", i+1, wait, w.listAgainAt, want)
		}
		if stirred := len(w.stir) > 0; stirred != (i > 0) {
			t.Errorf("after %d times copies are looked at: %v", i+1, stirred)
		}
		clock.Step(want / 2)
		if wait, left := w.noteBreak(), want-want/2; wait != left || !w.listAgainAt.Equal(clock.Now().Add(left)) {
			t.Errorf("after %d times and once more it waits %s, until %s; want %s", i+1, wait, w.listAgainAt, left)
		}
		clock.Step(want)
		if wait := w.noteBreak(); wait != 0 {
			t.Errorf("after %d times a list that is due waits %s", i+1, wait)
		}
		<-w.stir
		w.listAgainAt = time.Time{} // it was listed
	}
	var wait time.Duration
	for range 20 {
		clock.Step(30 * time.Second)
		wait = w.noteBreak()
		w.listAgainAt = time.Time{}
	}
	if wait != backoffLimit {
		t.Errorf("the longest wait is %s", wait)
	}
	clock.Step(time.Hour)
	if wait := w.noteBreak(); wait != gatherSets {
		t.Errorf("after an hour it waits %s", wait)
	}
}

// Red when a pass that comes between a break and the list for it puts that list off until the next pass that is due anyway.
func TestAReconciliationDelaysNoList(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	w := &worker{Options: Options{Resync: 5 * time.Minute, CountEvery: time.Minute, Clock: clock}, stir: make(chan struct{}, 1)}
	whole := State{Reached: true}
	if next := w.untilNext(whole); next < 50*time.Second {
		t.Errorf("with nothing broken the next pass comes after %s", next)
	}
	w.noteBreak()
	if next := w.untilNext(whole); next != gatherSets {
		t.Errorf("after a break the next pass comes after %s", next)
	}
	clock.Step(time.Second) // it took long
	if next := w.untilNext(whole); next != gatherSets {
		t.Errorf("after a break and a long pass the next pass comes after %s", next)
	}
}

func TestWhoIsAway(t *testing.T) {
	failed := func(err error) error { return fmt.Errorf("asking: %w", &url.Error{Op: "Get", Err: err}) }
	for why, test := range map[string]struct {
		err  error
		want bool
	}{
		"nobody listens":            {failed(&net.OpError{Err: syscall.ECONNREFUSED}), true},
		"nobody answers":            {failed(context.DeadlineExceeded), true},
		"it ends in the middle":     {failed(io.ErrUnexpectedEOF), true},
		"it hangs up":               {failed(&net.OpError{Err: syscall.ECONNRESET}), true},
		"a gateway without servers": {apierrors.NewGenericServerResponse(502, "get", schema.GroupResource{}, "", "", 0, true), true},
		"there is no way":           {failed(&net.OpError{Err: syscall.ENETUNREACH}), true},
		"it has too much to do":     {apierrors.NewTooManyRequests("", 1), true},
		"it has no storage":         {apierrors.NewInternalError(errors.New("etcd")), true},
		"it forbids":                {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), false},
		"it has no such kind":       {apierrors.NewNotFound(schema.GroupResource{}, "a"), false},
		"it lies":                   {failed(&remote.MisbehavesError{Did: "has no end"}), false},
		"it is unknown":             {failed(&net.DNSError{IsNotFound: true}), false},
	} {
		if got := isAway(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", why, got, test.want)
		}
	}
}

// Red when the log says of each watch that broke that the connection fails.
func TestWhyAWatchBrokeIsReported(t *testing.T) {
	for err, want := range map[error]string{
		&copies.EndedError{}:                     "the seed's API server ended a watch before its timeout",
		&remote.StaleError{}:                     "the API server no longer has the changes since then",
		&remote.WatchRefusedError{Status: 403}:   "the API server answers a watch with HTTP status 403",
		&remote.MisbehavesError{Did: "has none"}: "has none",
	} {
		if got := Describe(fmt.Errorf("watching: %w", err)); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
