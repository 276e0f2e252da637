package catalogue

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Slips of a version are allowed, and work as nobody may mean them.
func Slips(version *v1.AddonVersion) (found []string) {
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
		if IsRange(chart.Version) {
			found = append(found, fmt.Sprintf("source.helm.version %q reads as a range: name an exact version", text.Cut(chart.Version, 32)))
		}
		if strings.HasSuffix(chart.URL, "/index.yaml") {
			found = append(found, "source.helm.url ends in index.yaml: name the repository's folder")
		}
	}
	if fits := version.Constraints; fits != nil {
		for field, wanted := range map[string]v1.VersionRange{"kkpVersion": fits.KKPVersion, "k8sVersion": fits.K8sVersion} {
			if IsEmptyRange(string(wanted)) {
				found = append(found, fmt.Sprintf("constraints.%s %q fits no version", field, text.Cut(string(wanted), 64)))
			}
		}
	}
	slices.Sort(found)
	return found
}
