// Package api holds the tests of the kinds against real API servers: that their CRDs are accepted (the cost of the CEL
// rules included), that every rule lets the right objects in and keeps the wrong ones out with a message that helps, that
// the samples apply, and that the CRDs keep the conventions of the house.
package api
