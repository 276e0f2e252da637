//go:build race

package child_test

import "github.com/trellis-addons/trellis/pkg/render"

// smallMemory is more with the race detector, which takes several bytes for each.
const smallMemory = 512 << 20

// With the race detector its own library dies first, in its own words.
const (
	ofStack  render.DiedOf = ""
	ofMemory render.DiedOf = ""
)
