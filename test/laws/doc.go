// Package laws holds the tests that keep the house in order: who may import whom, how long files and functions may get,
// which versions of dependencies are too old, and that every condition's reason and every metric is
// explained.
//
// The laws are those of ARCHITECTURE.md. Each check is a function from parsed files to complaints, so that a table
// beside it shows the wrong code that it catches.
package laws
