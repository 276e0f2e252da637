package query

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-addons/trellis/pkg/base/lru"
)

// endpointOf is an endpoint whose users may list installations in the namespace of their name, which a RoleBinding names.
func endpointOf(reviews *Reviews, users ...string) *Server {
	rows, bindings := NewRows(), NewBindings()
	rows.source, bindings.source = synced{}, synced{}
	for _, user := range users {
		bindings.change(nil, bindingOf(user, rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}))
	}
	return New(Dependencies{Reviews: reviews, Rows: rows, Bindings: bindings}, Options{})
}

func requestOf(user, target string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	request.Header.Set("Authorization", "Bearer "+user)
	return request
}

// Red when a stream whose rights come from RoleBindings stays open while they can't be reviewed.
func TestAStreamEndsWhenItsRightsCannotBeReviewed(t *testing.T) {
	t.Parallel()
	server, clock := &stubborn{}, clocktesting.NewFakePassiveClock(time.Now())
	reviews := NewReviews(server, ReviewOptions{Clock: clock})
	identity := &Identity{token: sha256.Sum256([]byte("good")), user: authenticationv1.UserInfo{Username: "good"}}
	reviews.accepted.Put(identity.token, identity, lru.Forever) // only its rights can't be reviewed
	endpoint := endpointOf(reviews, "good")
	seen, err := endpoint.scope(t.Context(), identity, "")
	if err != nil || !slices.Equal(seen.namespaces, []string{"good"}) {
		t.Fatalf("the scope is %v (%v)", seen, err)
	}
	rights := check{server: endpoint, of: &call{request: requestOf("good", "/")}, seen: &seen}
	for range checksOfBindings {
		if reason := rights.again(t.Context()); reason != "" {
			t.Fatalf("the stream ends with its rights: %s", reason)
		}
	}
	server.fail.Store(true)
	clock.SetTime(clock.Now().Add(time.Minute))
	reason := ""
	for range checksOfBindings + mostUnchecked {
		if reason = rights.again(t.Context()); reason != "" {
			break
		}
	}
	if reason != endUnavailable {
		t.Errorf("the stream ends with %q, want %s", reason, endUnavailable)
	}
}

// reader is a caller that reads an answer once it wants to.
type reader struct {
	*httptest.ResponseRecorder
	wants chan struct{}
}

func (r reader) Write(part []byte) (int, error) {
	<-r.wants
	return r.ResponseRecorder.Write(part)
}

// Red when slow readers make the manager keep more answers than the bound of their user, or keep other users from theirs.
func TestAnswersOfSlowReadersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endpoint := endpointOf(NewReviews(&stubborn{}, ReviewOptions{}))
		ask := func(user string) int {
			got := httptest.NewRecorder()
			endpoint.ServeHTTP(got, requestOf(user, pathInstallations+"?namespace="+user))
			return got.Code
		}
		wants := make(chan struct{})
		for range answersOfOne {
			go endpoint.ServeHTTP(reader{httptest.NewRecorder(), wants}, requestOf("good", pathInstallations+"?namespace=good"))
		}
		synctest.Wait()
		if mine, other := ask("good"), ask("good-too"); mine != http.StatusServiceUnavailable || other != http.StatusOK {
			t.Errorf("while %d answers are being read, their user gets %d and another one %d", answersOfOne, mine, other)
		}
		close(wants)
		synctest.Wait()
		if mine := ask("good"); mine != http.StatusOK {
			t.Errorf("after the answers were read, their user gets %d", mine)
		}
	})
}

// Red when users of a namespace get more turns by making ServiceAccounts.
func TestServiceAccountsOfANamespaceShareTurns(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		serviceAccounts + "team:one": serviceAccounts + "team", serviceAccounts + "team:two": serviceAccounts + "team",
		serviceAccounts + "others:one": serviceAccounts + "others", "team": "team", "alice@example.com": "alice@example.com",
	} {
		if got := (&Identity{user: authenticationv1.UserInfo{Username: user}}).owner(); got != want {
			t.Errorf("the owner of turns of %q is %q, want %q", user, got, want)
		}
	}
}

type unsynced struct{ synced }

func (unsynced) HasSynced() bool { return false }

// Red when a certificate is refused for good before its authorities were read.
func TestCertificatesWaitForTheirAuthorities(t *testing.T) {
	t.Parallel()
	_, err := (&Clients{source: unsynced{}}).identify([]*x509.Certificate{{}})
	if _, isUnavailable := errors.AsType[*UnavailableError](err); !isUnavailable {
		t.Errorf("before the authorities were read, the refusal is %v", err)
	}
}
