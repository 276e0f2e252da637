package templatedata

import (
	"slices"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// SeedOf is the name of the Seed that has the datacenter; empty where none or several have it.
func SeedOf(datacenter string, seeds []kkpv1.Seed) string {
	name := ""
	for _, seed := range seeds {
		if _, has := seed.Spec.Datacenters[datacenter]; !has {
			continue
		}
		if name != "" {
			return ""
		}
		name = seed.Name
	}
	return name
}

// Allocations are IPAMAllocations by name.
func Allocations(allocations []kkpv1.IPAMAllocation) map[string]IPAMAllocation {
	byName := make(map[string]IPAMAllocation, len(allocations))
	for _, allocation := range allocations {
		byName[allocation.Name] = IPAMAllocation{
			Type: allocation.Spec.Type, CIDR: allocation.Spec.CIDR, Addresses: slices.Clone(allocation.Spec.Addresses),
		}
	}
	return byName
}
