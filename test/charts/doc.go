// Package charts holds the tests of the Helm charts: what they render to is applied to a real API server, runs under
// restricted pod security, and has the rights that the managers need and no others.
package charts
