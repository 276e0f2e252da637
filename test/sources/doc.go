// Package sources counts what a seed asks of the servers that add-ons come from, with the store and the controller of the
// product, an API server, and real git and Helm servers that keep what they were asked.
package sources
