package addonset

import (
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// checkDependencies refuses names that are no items of the set, cycles, and items that a Cluster's owner could prevent by leaving out
// another item.
func checkDependencies(spec *v1.AddonSetSpec) error {
	items, optional := itemNames(spec), map[v1.AddonName]bool{}
	for i := range spec.Addons {
		optional[spec.Addons[i].Name] = spec.Addons[i].AllowOptOut
	}
	needs := make(map[v1.AddonName][]v1.AddonName, len(spec.Addons))
	for i := range spec.Addons {
		item := &spec.Addons[i]
		for j, name := range item.DependsOn {
			place := fmt.Sprintf("spec.addons[%d] (%q).dependsOn[%d]", i, item.Name, j)
			switch {
			case !items[name]:
				return &FieldError{place, fmt.Sprintf("the set has no item %q: a set's items depend on each other only", name)}
			case optional[name] && !item.AllowOptOut:
				return &FieldError{place, fmt.Sprintf("owners of clusters may leave out item %q, and then nothing installs this one: set "+
					"allowOptOut of both items, or of none", name)}
			}
		}
		needs[item.Name] = item.DependsOn
	}
	search := search{needs: needs, state: map[v1.AddonName]visit{}}
	for i := range spec.Addons {
		if circle := search.from(spec.Addons[i].Name); circle != nil {
			return &CycleError{Items: circle}
		}
	}
	return nil
}

// visit is the state of an item in a search.
type visit int

const (
	unseen visit = iota
	onPath
	done
)

// search follows dependsOn, each item once.
type search struct {
	needs map[v1.AddonName][]v1.AddonName
	state map[v1.AddonName]visit
	path  []v1.AddonName
}

// from returns the first cycle that an item leads into, or nil.
func (s *search) from(item v1.AddonName) []string {
	switch s.state[item] {
	case done:
		return nil
	case onPath:
		return s.circle(item)
	case unseen:
	}
	s.state[item] = onPath
	s.path = append(s.path, item)
	for _, needed := range s.needs[item] {
		if found := s.from(needed); found != nil {
			return found
		}
	}
	s.path = s.path[:len(s.path)-1]
	s.state[item] = done
	return nil
}

func (s *search) circle(item v1.AddonName) []string {
	var names []string
	for _, name := range s.path {
		if name == item || names != nil {
			names = append(names, string(name))
		}
	}
	return names
}
