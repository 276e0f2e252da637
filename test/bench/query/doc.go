// Package query measures what an answer of the query endpoint costs with 5,000 versions: process CPU per request beside that
// of an empty handler behind the same TLS and the same caches of tokens and rights, the calls to the API server meanwhile,
// and the CPU of a decision, whole and after one change.
package query
