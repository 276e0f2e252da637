//go:build !race

package child_test

// smallMemory ends bombs soon, and is enough for harmless renderings.
const smallMemory = 128 << 20
