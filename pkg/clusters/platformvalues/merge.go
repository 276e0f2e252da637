package platformvalues

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// UnknownError says that an item selects by the name of the seed, which is unknown.
type UnknownError struct{ Item int }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("item %d of the platform's values selects by the name of the seed, which is unknown until the master "+
		"copies an AddonSet to the seed", e.Item)
}

// NeedSeed says whether an item selects by the name of the seed.
func NeedSeed(items []Item) bool {
	for _, one := range items {
		if one.selector != nil && target.NeedsSeed(one.selector) {
			return true
		}
	}
	return false
}

// Merged are the settings for a cluster with these labels and facts, later items above earlier ones: maps key by key,
// tolerations as a whole. It is nil if there are none. The error is an *UnknownError.
func Merged(items []Item, of target.Ref, facts labels.Set) (map[string]any, error) {
	merged := map[string]any{}
	for i, one := range items {
		isFor, err := one.isFor(i, of, facts)
		if err != nil {
			return nil, err
		}
		if isFor {
			overlay(merged, one.values)
		}
	}
	for key, value := range merged {
		inner, isMap := value.(map[string]any)
		if isMap && key != keyRegistries { // which overrides the flag's registries
			maps.DeleteFunc(inner, func(_ string, value any) bool { return value == nil || key == keyProxy && value == "" })
		}
		if list, isList := value.([]any); isMap && len(inner) == 0 || isList && len(list) == 0 {
			delete(merged, key)
		}
	}
	if len(merged) == 0 {
		return nil, nil
	}
	return merged, nil
}

func (i Item) isFor(index int, of target.Ref, facts labels.Set) (bool, error) {
	if i.selector == nil {
		name := of.Name
		if !of.IsKKP() {
			name = of.Namespace + "/" + of.Name
		}
		return i.cluster == name, nil
	}
	selected, isKnown := target.Selects(i.selector, facts)
	if !isKnown {
		return false, &UnknownError{Item: index + 1}
	}
	return selected, nil
}

// overlay merges values above others; it shares lists with them, but no map.
func overlay(below, above map[string]any) {
	for key, value := range above {
		given, isMap := value.(map[string]any)
		if !isMap {
			below[key] = value
			continue
		}
		inner, isThere := below[key].(map[string]any)
		if !isThere {
			inner = map[string]any{}
			below[key] = inner
		}
		maps.Copy(inner, given)
	}
}
