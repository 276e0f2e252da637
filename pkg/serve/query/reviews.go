package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
)

const (
	// mostTokens and mostVerdicts bound the caches. Refused tokens have their own: every client can invent them, and
	// they must not displace accepted ones.
	mostTokens   = 4096
	mostVerdicts = 16384
	// reviewsAtOnce bounds the calls to the API server that new tokens can cause.
	reviewsAtOnce = 16
	// reviewDeadline is for one review, including the wait for a turn.
	reviewDeadline = 5 * time.Second
)

// Creator creates a review, which returns with the API server's answer.
type Creator interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// ReviewOptions are settings of Reviews.
type ReviewOptions struct {
	// Audiences of which a token must have one; empty: those of the API server.
	Audiences []string
	// TTL is how long an answer is cached. Default: 10 s.
	TTL time.Duration
	// Clock is for tests. Default: the real one.
	Clock clock.PassiveClock
	// Metrics may be nil.
	Metrics *Metrics
}

// Reviews asks the API server which user has a token and what this user may list. It caches the answers and is safe
// for concurrent use.
type Reviews struct {
	creator  Creator
	options  ReviewOptions
	accepted *lru.Cache[tokenHash, *Identity]
	refused  *lru.Cache[tokenHash, struct{}]
	verdicts *lru.Cache[verdictKey, bool]
	flights  singleflight.Group
	turns    chan struct{}
}

type tokenHash [sha256.Size]byte

// Identity is the user of an accepted token or client certificate.
type Identity struct {
	// token is the hash of the token or of the certificate: a token is printable, and so never equal to a certificate.
	token tokenHash
	user  authenticationv1.UserInfo
}

// serviceAccounts is the beginning of the names of ServiceAccounts' users, before namespace and name.
const serviceAccounts = "system:serviceaccount:"

// owner is who gets turns: a user or, since users of a namespace may make any number of ServiceAccounts, all those of a namespace.
func (i *Identity) owner() string {
	account, isAccount := strings.CutPrefix(i.user.Username, serviceAccounts)
	if !isAccount {
		return i.user.Username
	}
	namespace, _, _ := strings.Cut(account, ":")
	return serviceAccounts + namespace
}

// Access is the right to list a resource of our group in a namespace, or what Verb says in place of list, or to get a path.
type Access struct{ Namespace, Resource, Path, Verb string }

// Resources of Access.
const (
	ResourceCatalogues    = "addoncatalogues"
	ResourceInstallations = "addoninstallations"
	resourceSets          = "addonsets"
)

// NewReviews returns Reviews that ask with a creator.
func NewReviews(creator Creator, options ReviewOptions) *Reviews {
	if options.TTL == 0 {
		options.TTL = 10 * time.Second
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reviews{
		creator: creator, options: options, turns: make(chan struct{}, reviewsAtOnce),
		accepted: lru.New[tokenHash, *Identity](mostTokens, options.Clock.Now),
		refused:  lru.New[tokenHash, struct{}](mostTokens, options.Clock.Now),
		verdicts: lru.New[verdictKey, bool](mostVerdicts, options.Clock.Now),
	}
}

// Identify returns the user of a token. Errors: *UnauthenticatedError, *UnavailableError.
func (r *Reviews) Identify(ctx context.Context, token string) (*Identity, error) {
	hash := tokenHash(sha256.Sum256([]byte(token)))
	if known, ok := r.knownToken(hash); ok {
		return identityOf(known)
	}
	answer, err := r.ask(ctx, string(hash[:]), func(ctx context.Context) (any, error) {
		if known, ok := r.knownToken(hash); ok {
			return known, nil
		}
		return r.reviewToken(ctx, token, hash)
	})
	if err != nil {
		return nil, err
	}
	return identityOf(answer.(*Identity))
}

// knownToken reads the caches; a nil identity is a refusal.
func (r *Reviews) knownToken(hash tokenHash) (identity *Identity, ok bool) {
	if known, ok := r.accepted.Get(hash); ok {
		return known, true
	}
	_, ok = r.refused.Get(hash)
	return nil, ok
}

func identityOf(known *Identity) (*Identity, error) {
	if known == nil {
		return nil, &UnauthenticatedError{}
	}
	return known, nil
}

// reviewToken returns nil for a refused token.
func (r *Reviews) reviewToken(ctx context.Context, token string, hash tokenHash) (*Identity, error) {
	asked := r.options.Clock.Now()
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: r.options.Audiences},
	}
	if err := r.creator.Create(ctx, review); err != nil {
		r.options.Metrics.reviewed("token", "error")
		return nil, &UnavailableError{"the token can't be checked now", withoutToken(err)}
	}
	life := r.options.TTL - r.options.Clock.Since(asked)
	if !review.Status.Authenticated || !r.isForUs(review.Status.Audiences) {
		r.options.Metrics.reviewed("token", "refused")
		r.refused.Put(hash, struct{}{}, life)
		return nil, nil
	}
	r.options.Metrics.reviewed("token", "accepted")
	identity := &Identity{token: hash, user: review.Status.User}
	r.accepted.Put(hash, identity, life)
	return identity, nil
}

// isForUs says whether a token is for one of our audiences. An authenticator without support for
// audiences returns none: its tokens count only if none is required.
func (r *Reviews) isForUs(audiences []string) bool {
	return len(r.options.Audiences) == 0 || slices.ContainsFunc(audiences, func(audience string) bool {
		return slices.Contains(r.options.Audiences, audience)
	})
}

type verdictKey struct {
	token  tokenHash
	access Access
}

// Authorise checks an access. Errors: *NotFoundError if it is not allowed, *UnavailableError.
func (r *Reviews) Authorise(ctx context.Context, identity *Identity, access Access) error {
	key := verdictKey{identity.token, access}
	if known, ok := r.verdicts.Get(key); ok {
		return verdict(known)
	}
	flight := string(identity.token[:]) + access.Verb + " " + access.Resource + "/" + access.Namespace + access.Path
	answer, err := r.ask(ctx, flight, func(ctx context.Context) (any, error) {
		if known, ok := r.verdicts.Get(key); ok {
			return known, nil
		}
		return r.reviewAccess(ctx, identity, access)
	})
	if err != nil {
		return err
	}
	return verdict(answer.(bool))
}

func verdict(allowed bool) error {
	if !allowed {
		return &NotFoundError{}
	}
	return nil
}

func (r *Reviews) reviewAccess(ctx context.Context, identity *Identity, access Access) (bool, error) {
	asked := r.options.Clock.Now()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: identity.user.Username, UID: identity.user.UID, Groups: identity.user.Groups, Extra: extraOf(identity),
	}}
	if access.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: access.Path, Verb: "get"}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: cmp.Or(access.Verb, "list"), Namespace: access.Namespace, Resource: access.Resource,
			Group: kubermaticv1.GroupVersion.Group, Version: kubermaticv1.GroupVersion.Version,
		}
	}
	if err := r.creator.Create(ctx, review); err != nil {
		r.options.Metrics.reviewed("access", "error")
		return false, &UnavailableError{"the right to see this can't be checked now", err}
	}
	allowed, result := review.Status.Allowed && !review.Status.Denied, "refused"
	if allowed {
		result = "accepted"
	}
	r.options.Metrics.reviewed("access", result)
	r.verdicts.Put(verdictKey{identity.token, access}, allowed, r.options.TTL-r.options.Clock.Since(asked))
	return allowed, nil
}

func extraOf(identity *Identity) map[string]authorizationv1.ExtraValue {
	extra := make(map[string]authorizationv1.ExtraValue, len(identity.user.Extra))
	for key, values := range identity.user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return extra
}

// ask runs one question of a kind at a time, and few in total. The question outlives its first caller, as others may
// wait for it. Questions read the cache again: the answer may have arrived between the caller's read and this call.
func (r *Reviews) ask(ctx context.Context, flight string, question func(context.Context) (any, error)) (any, error) {
	landing := r.flights.DoChan(flight, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewDeadline)
		defer cancel()
		select {
		case r.turns <- struct{}{}:
			defer func() { <-r.turns }()
		case <-ctx.Done():
			return nil, &UnavailableError{"too many tokens are being checked now", ctx.Err()}
		}
		return question(ctx)
	})
	select {
	case landed := <-landing:
		return landed.Val, landed.Err
	case <-ctx.Done():
		return nil, &UnavailableError{"the request ended", ctx.Err()}
	}
}

var errReview = errors.New("the review failed")

// withoutToken replaces an error that may contain a token by the kind of failure, for logs.
func withoutToken(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return fmt.Errorf("%w: %s", errReview, apierrors.ReasonForError(err))
}
