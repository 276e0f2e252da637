// Package fetchtest has servers and artifacts for the tests of the packages below fetch: git's own http-backend behind TLS,
// Helm repositories from a folder of the test's choosing, and the corpus of hostile archives that every reader of
// archives is run against. Nothing outside of tests imports it.
package fetchtest
