package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Difference is what a change of catalogues does to a version, or to an add-on if the version is empty.
type Difference struct {
	Addon   string `json:"addon"`
	Version string `json:"version,omitempty"`
	// Change is Added, Removed, Changed or LeftOut.
	Change string `json:"change"`
	Why    string `json:"why,omitempty"`
	// Seeds has the number of installations that use it, by seed.
	Seeds map[string]int `json:"seeds,omitempty"`
}

// seedsShown is how many seeds a row names.
const seedsShown = 3

// Differences is the table of what a change of catalogues does.
func Differences(all []Difference) Table {
	table := Table{Columns: []Column{
		{Head: "ADDON"}, {Head: "VERSION"}, {Head: "CHANGE"}, {Head: "INSTALLATIONS"}, {Head: "ON", Spare: true}, {Head: "WHY", Spare: true},
	}}
	colours := map[string]Colour{"Added": Green, "Removed": Red, "Changed": Yellow}
	for _, one := range all {
		used, seeds := 0, []string{}
		for _, seed := range slices.Sorted(maps.Keys(one.Seeds)) {
			used += one.Seeds[seed]
			seeds = append(seeds, fmt.Sprintf("%s %d", seed, one.Seeds[seed]))
		}
		row := Of(one.Addon, one.Version, one.Change, strconv.Itoa(used), text.Names(seeds, seedsShown), one.Why)
		row[2].Colour = colours[one.Change]
		table.Add(row...)
	}
	return table
}
