package webhook

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/text"
)

// slipsWarned is how many slips of one edit are told.
const slipsWarned = 10

// slips warn of what is allowed and works as nobody may mean it, in versions that an edit brings or changes.
func slips(before, after *v1.AddonCatalogue) (warnings []string) {
	had := map[[2]string]*v1.AddonVersion{}
	for version, name := range versionsOf(before) {
		had[name] = version
	}
	told := map[string]bool{}
	for version, name := range versionsOf(after) {
		if equality.Semantic.DeepEqual(had[name], version) {
			continue
		}
		for _, slip := range slipsOf(version) {
			if !told[name[0]+slip] && len(warnings) < slipsWarned { // versions of an add-on repeat it
				warnings = append(warnings, fmt.Sprintf("addon %q version %q: %s", name[0], text.Cut(name[1], 64), slip))
			}
			told[name[0]+slip] = true
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

func slipsOf(version *v1.AddonVersion) (found []string) {
	if template := version.Template; template != nil && template.Health != nil && template.Health.Mode == v1.HealthByRules {
		var kinds []string
		for _, rule := range template.Health.Rules {
			kinds = append(kinds, rule.Kind)
		}
		slices.Sort(kinds)
		found = append(found, fmt.Sprintf("health mode Rules judges only %s: what else of it fails is not noticed; without mode its other "+
			"objects are judged too", text.Names(slices.Compact(kinds), 2)))
	}
	if version.Source != nil && version.Source.Helm != nil {
		chart := version.Source.Helm
		if catalogue.IsRange(chart.Version) {
			found = append(found, fmt.Sprintf("source.helm.version %q reads as a range: name an exact version", text.Cut(chart.Version, 32)))
		}
		if strings.HasSuffix(chart.URL, "/index.yaml") {
			found = append(found, "source.helm.url ends in index.yaml: name the repository's folder")
		}
	}
	if fits := version.Constraints; fits != nil {
		for field, wanted := range map[string]v1.VersionRange{"kkpVersion": fits.KKPVersion, "k8sVersion": fits.K8sVersion} {
			if catalogue.IsEmptyRange(string(wanted)) {
				found = append(found, fmt.Sprintf("constraints.%s %q fits no version", field, text.Cut(string(wanted), 64)))
			}
		}
	}
	slices.Sort(found)
	return found
}
