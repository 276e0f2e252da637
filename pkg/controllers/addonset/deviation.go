package addonset

import (
	"fmt"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// deviationsNamed is the maximal number of deviations in the status of a cluster.
const deviationsNamed = 3

// deviationOf is how a cluster deviates from an item: as annotation leave-out of the set says, or, if the item allows it, as the Cluster
// says.
func (s *set) deviationOf(of *item, in *place) addonset.Deviation {
	name := string(of.Name)
	if version, isNamed := s.leaveOut.Item(in.ref.LongName(), name); isNamed {
		return addonset.Deviation{Set: s.name, Item: name, OptOut: version == "", Version: version}
	}
	if !of.AllowOptOut {
		return addonset.Deviation{}
	}
	return addonset.DeviationOf(in.deviations, s.name, name)
}

// deviate notes a deviation for the status, with its author and reason.
func (p *plan) deviate(by addonset.Deviation) {
	what := "is left out"
	if !by.OptOut {
		what = fmt.Sprintf("is pinned to version %q", by.Version)
	}
	who := "annotation " + v1.AnnotationLeaveOut + " of the set"
	if by.By != "" {
		who = fmt.Sprintf("%q in annotation %s of the Cluster: %s", by.By, v1.AnnotationDeviations, by.Why)
	}
	p.deviations = append(p.deviations, fmt.Sprintf("item %q %s by %s", by.Item, what, who))
	if by.OptOut {
		p.optedOut = append(p.optedOut, by.Item)
	}
}

// leaveItem plans an item that is left out of the cluster: its installation is removed, as with an item that the set no longer has.
func (p planner) leaveItem(result *plan, live *observation, in *place) {
	if live != nil && live.isOf(p.set.name) {
		p.release(result, live, in)
	}
}

// wanted is the version that a set requests for an item in a cluster: an exact one, a range or, if empty, any.
func (s *set) wanted(of *item, in *place) string {
	if by := s.deviationOf(of, in); by.Version != "" {
		return by.Version
	}
	return of.AddonRef.Version
}

// without are names without those that a cluster opted out of.
func without(names, optedOut []string) []string {
	if len(optedOut) == 0 {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(optedOut, name) })
}
