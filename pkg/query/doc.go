// Package query is the query endpoint of a seed: which add-ons fit a platform, even one that does
// not exist yet, why others don't, what a version's form asks for, and which installations an
// upgrade would break. It only reads, apart from the Secret of its certificate.
//
// It reads merged AddonCatalogues, Clusters and AddonInstallations from the manager's cache, and
// asks the API server for TokenReviews (who is it) and SubjectAccessReviews (may they list that).
// It caches both answers for ten seconds by the token's hash.
//
// The way of a request:
//
//	server.go        TLS, limits and deadlines
//	handler.go       find the route, authenticate, let the route answer, write
//	routes.go        the table of routes; a test compares it with openapi.json
//	parameters.go    strict reading of the request
//	reviews.go       who is it, and may they
//	answers.go       the answer, encoded once for each platform and change of the catalogue
//
// Guard (guard.go) asks the same of who wants a path that others serve, such as metrics (ADR 77).
//
// A change of an object is parsed once (catalogue.go). Changes that come together make one
// snapshot. A cached answer is rebuilt at the next request, from its old parts for unchanged
// add-ons.
//
// A refusal is a type (refusals.go). Forbidden and absent are the same refusal, so that callers
// can't find out which namespaces exist. No refusal contains a token.
//
// The endpoint runs on every replica. It serves HTTP/1.1 only: HTTP/2 would save little and offers
// more ways to exhaust a server.
//
//rights:seed create tokenreviews.authentication.k8s.io if=query -- who asks the query endpoint
//rights:seed create subjectaccessreviews.authorization.k8s.io if=query -- what they may see
package query
