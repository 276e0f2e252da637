package query

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stubborn is an API server at its worst: it fails, and it holds its answers back.
type stubborn struct {
	calls, under, most atomic.Int32
	fail               atomic.Bool
	hold               chan struct{}
}

var errServer = errors.New("the server is away, and repeats the token: secret")

func (s *stubborn) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	s.calls.Add(1)
	under := s.under.Add(1)
	defer s.under.Add(-1)
	for {
		most := s.most.Load()
		if under <= most || s.most.CompareAndSwap(most, under) {
			break
		}
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.fail.Load() {
		return errServer
	}
	switch review := object.(type) {
	case *authenticationv1.TokenReview:
		review.Status.Authenticated = strings.HasPrefix(review.Spec.Token, "good")
		review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token}
	case *authorizationv1.SubjectAccessReview:
		review.Status.Allowed = review.Spec.ResourceAttributes.Namespace == review.Spec.User
	}
	return nil
}

func TestFailuresAreReportedAndNotKept(t *testing.T) {
	t.Parallel()
	server := &stubborn{}
	reviews := NewReviews(server, ReviewOptions{})
	server.fail.Store(true)
	_, err := reviews.Identify(t.Context(), "good")
	unavailable, ok := errors.AsType[*UnavailableError](err)
	if !ok || strings.Contains(unavailable.Unwrap().Error(), "secret") {
		t.Fatalf("got %v because of %v, want an UnavailableError without the call's text", err, errors.Unwrap(err))
	}
	server.fail.Store(false)
	identity, err := reviews.Identify(t.Context(), "good")
	if err != nil {
		t.Fatalf("after the failure: %v", err)
	}
	server.fail.Store(true)
	if _, ok := errors.AsType[*UnavailableError](reviews.Authorise(t.Context(), identity, Access{Namespace: "good"})); !ok {
		t.Error("a failed SubjectAccessReview is no UnavailableError")
	}
	server.fail.Store(false)
	if err := reviews.Authorise(t.Context(), identity, Access{Namespace: "good"}); err != nil {
		t.Errorf("after the failure: %v", err)
	}
	if err := reviews.Authorise(t.Context(), identity, Access{Namespace: "other"}); err == nil {
		t.Error("a right to one namespace is one to another")
	}
}

// TestMadeUpTokensDriveNobodyOut floods the caches with tokens that are refused.
func TestMadeUpTokensDriveNobodyOut(t *testing.T) {
	t.Parallel()
	server := &stubborn{}
	reviews := NewReviews(server, ReviewOptions{Clock: clocktesting.NewFakePassiveClock(time.Now())}) // nothing ends by itself
	ask := func(token string) error {
		_, err := reviews.Identify(t.Context(), token)
		return err
	}
	if err := ask("good"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * mostTokens {
		if _, ok := errors.AsType[*UnauthenticatedError](ask(fmt.Sprint("bad", i))); !ok {
			t.Fatal("a made-up token is taken")
		}
	}
	before := server.calls.Load()
	if err := ask("good"); err != nil || server.calls.Load() != before {
		t.Errorf("the good token was driven out: %v, %d further calls", err, server.calls.Load()-before)
	}
	if cached := reviews.refused.Len(); cached > mostTokens {
		t.Errorf("%d refused tokens are kept", cached)
	}
}

// TestFewQuestionsAtATime has many askers with tokens of their own, and many with one.
func TestFewQuestionsAtATime(t *testing.T) {
	t.Parallel()
	server := &stubborn{hold: make(chan struct{})}
	reviews := NewReviews(server, ReviewOptions{})
	var group sync.WaitGroup
	for i := range 10 * reviewsAtOnce {
		group.Go(func() { _, _ = reviews.Identify(t.Context(), fmt.Sprint("good", i%(2*reviewsAtOnce))) })
	}
	close(server.hold)
	group.Wait()
	if most := server.most.Load(); most > reviewsAtOnce {
		t.Errorf("%d questions at a time, %d at most", most, reviewsAtOnce)
	}
	if calls := server.calls.Load(); calls != 2*reviewsAtOnce {
		t.Errorf("%d questions about %d tokens", calls, 2*reviewsAtOnce)
	}
}

// Red when a question does not look once more at what is kept: whoever waited for a turn while the
// answer came asks again.
func TestLateAskersLookOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &stubborn{}
		reviews := NewReviews(server, ReviewOptions{})
		for range reviewsAtOnce {
			reviews.turns <- struct{}{}
		}
		hash := tokenHash(sha256.Sum256([]byte("good")))
		identity, access := &Identity{token: hash}, Access{Namespace: "good"}
		reported := make(chan error, 2)
		go func() {
			_, err := reviews.Identify(t.Context(), "good")
			reported <- err
		}()
		go func() { reported <- reviews.Authorise(t.Context(), identity, access) }()
		synctest.Wait() // both looked, found nothing, and wait for a turn
		reviews.accepted.Put(hash, identity, time.Minute)
		reviews.verdicts.Put(verdictKey{hash, access}, true, time.Minute)
		<-reviews.turns
		if first, second := <-reported, <-reported; first != nil || second != nil || server.calls.Load() != 0 {
			t.Errorf("got %v and %v after %d questions", first, second, server.calls.Load())
		}
	})
}

// TestOneAskerGoesAndTheOtherIsAnswered: the question of whoever came first serves all.
func TestOneAskerGoesAndTheOtherIsAnswered(t *testing.T) {
	t.Parallel()
	server := &stubborn{hold: make(chan struct{})}
	reviews := NewReviews(server, ReviewOptions{})
	impatient, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := reviews.Identify(impatient, "good")
		gone <- err
	}()
	patient := make(chan error, 1)
	go func() {
		_, err := reviews.Identify(t.Context(), "good")
		patient <- err
	}()
	cancel()
	if _, ok := errors.AsType[*UnavailableError](<-gone); !ok {
		t.Error("whoever went was told something else")
	}
	close(server.hold)
	if err := <-patient; err != nil {
		t.Errorf("whoever stayed got %v", err)
	}
}

// TestAnAnswerIsAsOldAsItsQuestion: the time that a call takes counts.
func TestAnAnswerIsAsOldAsItsQuestion(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	slow := &slowly{stubborn: &stubborn{}, clock: clock, takes: 4 * time.Second}
	reviews := NewReviews(slow, ReviewOptions{Clock: clock, TTL: 10 * time.Second})
	for _, step := range []struct {
		after time.Duration
		calls int32
	}{{0, 1}, {5 * time.Second, 1}, {2 * time.Second, 2}} {
		clock.SetTime(clock.Now().Add(step.after))
		if _, err := reviews.Identify(t.Context(), "good"); err != nil {
			t.Fatal(err)
		}
		if got := slow.calls.Load(); got != step.calls {
			t.Errorf("%s later: %d calls in all, want %d", step.after, got, step.calls)
		}
	}
}

type slowly struct {
	*stubborn
	clock *clocktesting.FakePassiveClock
	takes time.Duration
}

func (s *slowly) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	s.clock.SetTime(s.clock.Now().Add(s.takes))
	return s.stubborn.Create(ctx, object, options...)
}

func TestAudiencesMustMeet(t *testing.T) {
	t.Parallel()
	reviews := NewReviews(&stubborn{}, ReviewOptions{Audiences: []string{"trellis"}})
	// The server names no audience: it knows nothing of them, so that the token may be for anybody.
	if _, err := reviews.Identify(t.Context(), "good"); err == nil {
		t.Error("a token for nobody in particular is taken")
	}
}
