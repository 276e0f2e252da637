//go:build !race

package child_test

import "github.com/trellis-addons/trellis/pkg/render"

// smallMemory ends bombs soon, and is enough for harmless renderings.
const smallMemory = 128 << 20

// What a renderer has died of when a template calls itself without end, and when it asks for too
// much at once.
const (
	ofStack  = render.DiedOfStack
	ofMemory = render.DiedOfMemory
)
