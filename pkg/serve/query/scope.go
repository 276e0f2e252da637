package query

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
)

const (
	// mostCandidates is how many namespaces are reviewed for one caller.
	mostCandidates = 200
	// reviewsOfOne is how many reviews of one request run at a time.
	reviewsOfOne = 4
)

// scope is where a caller may list installations.
type scope struct {
	all bool
	// namespaces are sorted. If all is set, there are none.
	namespaces []string
	// truncated: not all candidates were reviewed.
	truncated bool
}

func (s *scope) has(namespace string) bool {
	if s.all {
		return true
	}
	_, isIn := slices.BinarySearch(s.namespaces, namespace)
	return isIn
}

func (s *scope) equal(other scope) bool {
	return s.all == other.all && slices.Equal(s.namespaces, other.namespaces)
}

// scope is that of a caller, or the namespace of the request. Errors: *NotFoundError if the caller may list installations nowhere,
// *UnavailableError.
func (s *Server) scope(ctx context.Context, identity *Identity, namespace string) (scope, error) {
	if err := s.Rows.ready(); err != nil {
		return scope{}, err
	}
	err := s.mayList(ctx, identity, namespace)
	_, isDenied := errors.AsType[*NotFoundError](err)
	switch {
	case isDenied && namespace == "":
		return s.scopeOfBindings(ctx, identity)
	case err != nil:
		return scope{}, err
	case namespace == "":
		return scope{all: true}, nil
	}
	return scope{namespaces: []string{namespace}}, nil
}

func (s *Server) mayList(ctx context.Context, identity *Identity, namespace string) error {
	return s.Reviews.Authorise(ctx, identity, Access{Namespace: namespace, Resource: ResourceInstallations})
}

// scopeOfBindings reviews the namespaces whose RoleBindings name the caller: first those that have installations.
func (s *Server) scopeOfBindings(ctx context.Context, identity *Identity) (scope, error) {
	candidates, err := s.Bindings.candidates(&identity.user)
	if err != nil {
		return scope{}, err
	}
	found := scope{truncated: len(candidates) > mostCandidates}
	if found.truncated {
		slices.SortStableFunc(candidates, func(a, b string) int { return rank(s.Rows.has(a)) - rank(s.Rows.has(b)) })
		candidates = candidates[:mostCandidates]
		slices.Sort(candidates)
	}
	allowed := make([]bool, len(candidates))
	end, err := s.turns.take(ctx, scoping, identity.owner())
	if err != nil {
		return scope{}, err
	}
	defer end()
	reviews, ctx := errgroup.WithContext(ctx)
	reviews.SetLimit(reviewsOfOne)
	for i, namespace := range candidates {
		reviews.Go(func() error {
			err := s.mayList(ctx, identity, namespace)
			if _, isDenied := errors.AsType[*NotFoundError](err); isDenied {
				return nil
			}
			allowed[i] = err == nil
			return err
		})
	}
	if err := reviews.Wait(); err != nil {
		return scope{}, err
	}
	for i, namespace := range candidates {
		if allowed[i] {
			found.namespaces = append(found.namespaces, namespace)
		}
	}
	if len(found.namespaces) == 0 {
		return scope{}, &NotFoundError{}
	}
	return found, nil
}

func rank(isFirst bool) int {
	if isFirst {
		return 0
	}
	return 1
}
