//go:build !race

package child_test

import "github.com/trellis-addons/trellis/pkg/render"

// smallMemory ends bombs soon, and is enough for harmless renderings.
const smallMemory = 128 << 20

// Causes of a renderer's death when a template calls itself without end, and when it requests too much memory at
// once.
const (
	ofStack  = render.DiedOfStack
	ofMemory = render.DiedOfMemory
)
