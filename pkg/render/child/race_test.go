//go:build race

package child_test

import "github.com/trellis-addons/trellis/pkg/render"

// smallMemory is larger with the race detector, which uses several bytes for each.
const smallMemory = 512 << 20

// With the race detector its own library dies first, with its own messages.
const (
	ofStack  render.DiedOf = ""
	ofMemory render.DiedOf = ""
)
