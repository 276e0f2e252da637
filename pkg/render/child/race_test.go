//go:build race

package child_test

// smallMemory is more with the race detector, which takes several bytes for each.
const smallMemory = 512 << 20
