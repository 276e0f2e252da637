//go:build !race

package long

// raced says whether the race detector watches.
const raced = false
