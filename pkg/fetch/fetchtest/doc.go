// Package fetchtest has servers and artifacts for tests of fetch and its parts: git's http-backend
// behind TLS, Helm repositories, registries, and a corpus of hostile archives. Only tests import
// it.
package fetchtest
