package templatedata

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// SeedOf is the name of the Seed that has the datacenter; empty if none or several have it.
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

// platform has every key that templates may read below .Platform, so that none fails without settings of the platform.
func platform(given map[string]any, mirrors map[string]string) map[string]any {
	proxy := map[string]any{"http": "", "https": "", "noProxy": "", "caBundle": ""}
	registries := make(map[string]any, len(mirrors))
	for from, to := range mirrors {
		registries[from] = to
	}
	whole := map[string]any{"nodeSelector": map[string]any{}, "tolerations": []any{}, "proxy": proxy, "registries": registries}
	for key, value := range listed(given) {
		below, isMap := whole[key].(map[string]any)
		above, alsoMap := value.(map[string]any)
		if !isMap || !alsoMap {
			whole[key] = value
			continue
		}
		maps.Copy(below, above)
		maps.DeleteFunc(below, func(_ string, value any) bool { return value == nil })
	}
	return whole
}

// listed is a copy of the platform's list; nil for an empty one.
func listed(given map[string]any) map[string]any {
	if len(given) == 0 {
		return nil
	}
	return runtime.DeepCopyJSON(given)
}
