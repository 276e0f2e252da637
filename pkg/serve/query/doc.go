// Package query is the query endpoint of a seed. It answers which add-ons fit a platform, even one that does not
// exist yet, why others don't fit, which form a version has, which installations an upgrade would break, and what an
// installation would change. It also lists installations, clusters, sets and sources, and streams changes (ADR 142). It only
// reads, apart from the Secret of its certificate and ConfigMap addon-query, by which clients find it (publication.go, ADR 141).
//
// It reads merged AddonCatalogues, Clusters, AddonInstallations and AddonSets from the manager's cache, and calls the API server
// for TokenReviews (which user has this token) and SubjectAccessReviews (may the user do that). It caches both
// answers for ten seconds by the token's hash.
//
// The way of a request:
//
//	server.go        TLS, limits and deadlines
//	handler.go       find the route, authenticate, let the route answer, write
//	routes.go        the table of routes; a test compares it with openapi.json
//	parameters.go    strict reading of the request
//	clients.go       the user of a client certificate
//	reviews.go       the user of a token, and the user's rights
//	preview.go       an AddonInstallation as it would be, previewed in its namespace's turn (ADR 140); setpreview.go: an AddonSet
//	answers.go       the answer, encoded once for each platform and change of the catalogue
//	rows.go          the index of installations; page.go lists its rows, stream.go streams their changes
//	limits.go        how many requests do each kind of work at a time, fairly between users or namespaces
//	scope.go         the namespaces that a caller may see, with candidates from RoleBindings (bindings.go)
//
// Guard (guard.go) checks the same for paths of other handlers, such as metrics (ADR 77).
//
// A change of an object is parsed once (catalogue.go). Changes that arrive together make one snapshot. A cached
// answer is rebuilt at the next request, from its old parts for unchanged add-ons.
//
// A refusal is a type (refusals.go). Forbidden and absent are the same refusal, so that callers can't find out which
// namespaces exist. No refusal contains a token.
//
// The endpoint runs on every replica. It serves HTTP/1.1 only: HTTP/2 would save little and offers more ways to
// exhaust a server.
//
//rights:seed create tokenreviews.authentication.k8s.io if=query -- authenticates clients of the query endpoint
//rights:seed create subjectaccessreviews.authorization.k8s.io if=query -- authorizes clients of the query endpoint
//rights:seed get,list,watch configmaps if=query -- ConfigMap extension-apiserver-authentication, with the authorities of client certificates
//rights:seed-public patch configmaps names=addon-query if=query -- how clients reach and trust the query endpoint
//rights:seed list,watch rolebindings.rbac.authorization.k8s.io if=query -- candidates for the namespaces whose installations a client may list
package query
