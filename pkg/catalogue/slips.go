package catalogue

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Slips are parts of a version that are allowed, but probably mistakes.
func Slips(version *v1.AddonVersion) (found []string) {
	if fits := version.Constraints; fits != nil {
		found = append(emptyRange("kkpVersion", fits.KKPVersion), emptyRange("k8sVersion", fits.K8sVersion)...)
	}
	if version.Template != nil && version.Template.Health != nil {
		found = append(found, leftOutOfHealth(version.Template.Health)...)
	}
	if version.Source != nil && version.Source.Helm != nil {
		found = append(found, chartSlips(version.Source.Helm)...)
	}
	return found
}

func emptyRange(field string, wanted v1.VersionRange) []string {
	if !IsEmptyRange(string(wanted)) {
		return nil
	}
	return []string{fmt.Sprintf("constraints.%s %q fits no version", field, text.Cut(string(wanted), 64))}
}

func leftOutOfHealth(health *v1.HealthCheck) []string {
	if health.Mode != v1.HealthByRules {
		return nil
	}
	var kinds []string
	for _, rule := range health.Rules {
		kinds = append(kinds, rule.Kind)
	}
	slices.Sort(kinds)
	return []string{fmt.Sprintf("health mode Rules evaluates only %s: failures of all other objects of this version are not noticed; leave "+
		"template.health.mode out to have them evaluated too", text.Names(slices.Compact(kinds), 2))}
}

func chartSlips(chart *v1.HelmSource) (found []string) {
	if strings.HasSuffix(chart.URL, "/index.yaml") {
		found = append(found, "source.helm.url ends in index.yaml: give the repository's URL without /index.yaml")
	}
	if IsRange(chart.Version) {
		found = append(found, fmt.Sprintf("source.helm.version %q reads as a range: name an exact version", text.Cut(chart.Version, 32)))
	}
	return found
}
