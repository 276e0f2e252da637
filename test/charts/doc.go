// Package charts renders the Helm charts, and holds their tests: what they render to is applied to a real API server, runs under
// restricted pod security, and has the rights that the managers need and no others.
package charts
