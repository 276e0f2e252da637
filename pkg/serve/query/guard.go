package query

import (
	"errors"
	"net/http"
)

// Guard passes requests to a handler if their user may get a path, according to the API server's authorisers, for
// example by a ClusterRole with nonResourceURLs. It is for paths that the query endpoint does not serve, such as
// metrics.
func Guard(reviews *Reviews, path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		code, problem := http.StatusServiceUnavailable, reviews.mayGet(request, path)
		var unknown *UnauthenticatedError
		var none *NotFoundError
		switch {
		case problem == nil:
			next.ServeHTTP(w, request)
			return
		case errors.As(problem, &unknown):
			code = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", challenge)
		case errors.As(problem, &none):
			http.Error(w, "you may not get "+path+": ask an admin for a ClusterRole whose nonResourceURLs have this path", http.StatusForbidden)
			return
		}
		http.Error(w, problem.Error(), code)
	})
}

// mayGet says whether the user of a request may get a path. Errors: *UnauthenticatedError, *NotFoundError for no,
// *UnavailableError.
func (r *Reviews) mayGet(request *http.Request, path string) error {
	token, err := bearer(request.Header)
	if err != nil {
		return err
	}
	identity, err := r.Identify(request.Context(), token)
	if err != nil {
		return err
	}
	return r.Authorise(request.Context(), identity, Access{Path: path})
}
