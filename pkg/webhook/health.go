package webhook

import (
	"fmt"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// versionName is a version of an add-on, as its catalogue writes both.
type versionName struct {
	addon   v1.AddonName
	version string
}

// ruledKinds are the kinds that versions with health mode Rules judge, which leave out all others.
func ruledKinds(object *v1.AddonCatalogue) map[versionName]string {
	found := map[versionName]string{}
	if object == nil {
		return found
	}
	for i := range object.Spec.Addons {
		addon := &object.Spec.Addons[i]
		for j := range addon.Versions {
			template := addon.Versions[j].Template
			if template == nil || template.Health == nil || template.Health.Mode != v1.HealthByRules {
				continue
			}
			var kinds []string
			for _, rule := range template.Health.Rules {
				kinds = append(kinds, rule.Kind)
			}
			slices.Sort(kinds)
			found[versionName{addon.Name, addon.Versions[j].Version}] = text.Names(slices.Compact(kinds), 3)
		}
	}
	return found
}

// healthWarnings say what mode Rules leaves out of health: one for each add-on of which versions come to do so, or do so for other kinds.
func healthWarnings(before, after *v1.AddonCatalogue) (warnings []string) {
	had, has := ruledKinds(before), ruledKinds(after)
	for i := range after.Spec.Addons {
		addon := &after.Spec.Addons[i]
		for j := range addon.Versions {
			name := versionName{addon.Name, addon.Versions[j].Version}
			if has[name] == had[name] || has[name] == "" {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("addon %q version %q: health mode Rules judges only %s: what else of it fails is not noticed; "+
				"without mode its other objects are judged too", name.addon, text.Cut(name.version, 64), has[name]))
			break
		}
	}
	return warnings
}
