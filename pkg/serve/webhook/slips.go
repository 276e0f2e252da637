package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// slipsWarned is how many probable mistakes of one edit are reported.
const slipsWarned = 10

// slips warn about probable mistakes that are allowed, in versions that an edit adds or changes.
func slips(before, after *v1.AddonCatalogue) (warnings []string) {
	had := map[[2]string]*v1.AddonVersion{}
	for version, name := range versionsOf(before) {
		had[name] = version
	}
	shown := map[string]bool{}
	for version, name := range versionsOf(after) {
		if equality.Semantic.DeepEqual(had[name], version) {
			continue
		}
		for _, slip := range catalogue.Slips(version) {
			if !shown[name[0]+slip] && len(warnings) < slipsWarned { // versions of an add-on repeat it
				warnings = append(warnings, fmt.Sprintf("addon %q version %q: %s", name[0], text.Cut(name[1], 64), slip))
			}
			shown[name[0]+slip] = true
		}
	}
	return warnings
}

// versionsOf are the versions of a catalogue, which may be nil, with the names of add-on and version.
func versionsOf(object *v1.AddonCatalogue) func(yield func(*v1.AddonVersion, [2]string) bool) {
	return func(yield func(*v1.AddonVersion, [2]string) bool) {
		if object == nil {
			return
		}
		for i := range object.Spec.Addons {
			addon := &object.Spec.Addons[i]
			for j := range addon.Versions {
				if version := &addon.Versions[j]; !yield(version, [2]string{string(addon.Name), version.Version}) {
					return
				}
			}
		}
	}
}
