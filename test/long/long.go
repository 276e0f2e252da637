// Package long leaves tests out of `make test` that need repetition, many Clusters, a program that is built from source, or a long time.
// `make test-long` runs them: its parts are those of hack/tests/parts.
package long

import (
	"flag"
	"testing"
)

// Skip skips a test with -short. It names the part of `make test-long` that runs the test, and says why that is enough.
func Skip(t testing.TB, part, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s: run make test-long PART=%s", why, part)
	}
}

// Heavy skips a test with -short where the race detector watches: one that computes for long in one goroutine, in which
// the detector finds nothing and takes many times as long. `make test` runs it without the detector; it finds such tests
// by this call (hack/tests/suite).
func Heavy(t testing.TB) {
	t.Helper()
	if raced && testing.Short() {
		t.Skip("the race detector makes it slow: make test runs it without")
	}
}

// Skips says whether -short leaves nothing to do for the TestMain of a package whose tests all Skip: then it need start nothing for them.
func Skips() bool {
	flag.Parse()
	return testing.Short() && flag.Lookup("test.bench").Value.String() == ""
}
