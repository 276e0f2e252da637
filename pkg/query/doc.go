// Package query is the query endpoint of a seed: which add-ons fit a platform, also one that does
// not exist yet, why the rest does not, what a version's form asks for, and which installations an
// upgrade would break. It reads and never writes, apart from the Secret with its own certificate.
//
// Reads, on the seed: merged AddonCatalogues, Clusters and AddonInstallations from the manager's
// cache. It asks the API server two kinds of questions besides: TokenReview (who is it) and
// SubjectAccessReview (may they list that). Answers to both are kept for ten seconds by the hash of
// the token; a cached identity costs no call.
//
// The way of a request:
//
//	server.go        TLS, limits and deadlines
//	handler.go       find the route, authenticate, let the route answer, write
//	routes.go        the table of routes; openapi.json describes the same, and a test compares both
//	parameters.go    strict reading of the request
//	reviews.go       who is it, and may they
//	answers.go       the answer, encoded once for each platform and change of the catalogue
//
// The way of a change: the informer parses the one object that changed (catalogue.go), changes that
// come together become one snapshot, and each kept answer is rebuilt when it is next asked for,
// from its old parts where the add-on did not change.
//
// A refusal is a type (refusals.go). Forbidden and absent are one and the same refusal, so that a
// caller can't find out which namespaces exist. No refusal holds a token.
//
// The endpoint runs on every replica, leader or not. It serves HTTP/1.1 only: what it saves by
// HTTP/2 is not worth the ways to exhaust a server that HTTP/2 has.
package query
