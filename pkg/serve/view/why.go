package view

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Finding is one reason why an add-on is not installed as requested.
type Finding struct {
	// About is a version, or an installation.
	About   string `json:"about"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	Do      string `json:"do,omitempty"`
}

// Verdict is the answer to why an add-on is, or is not, installed in a cluster.
type Verdict struct {
	Addon  string `json:"addon"`
	Wanted string `json:"wanted,omitempty"`
	// Version is the one that a new installation would get; empty: none fits.
	Version string `json:"version,omitempty"`
	// Fits says whether a new installation gets a version, and no installation of the add-on has a problem.
	Fits     bool      `json:"fits"`
	Findings []Finding `json:"findings"`
}

// Why collects all reasons about an add-on, and a version or range of it, in a cluster: versions that don't fit, from the
// cluster's available catalogue, and conditions of the add-on's installations.
func Why(addon, wanted string, available *v1.AddonCatalogue, installations []v1.AddonInstallation) Verdict {
	verdict := Verdict{Addon: addon, Wanted: wanted, Findings: []Finding{}}
	entry := offeredEntry(addon, available)
	chosen, refusal := catalogue.Select(entry, wanted, "", catalogue.Platform{}, catalogue.SelectOptions{})
	if refusal == nil {
		verdict.Version = chosen.Version.Version
	}
	verdict.excluded(available)
	if refusal != nil && len(verdict.Findings) == 0 {
		verdict.add("add-on "+addon, v1.ReasonVersionUnknown, refusal.Error(), "")
	}
	verdict.Fits = refusal == nil
	for i := range installations {
		if one := &installations[i]; string(one.Spec.AddonRef.Name) == addon {
			verdict.installed(one, entry)
		}
	}
	return verdict
}

// offeredEntry is an entry of the offered versions, which have no constraints: they fit.
func offeredEntry(addon string, available *v1.AddonCatalogue) *catalogue.Entry {
	offered := v1.Addon{Name: v1.AddonName(addon)}
	for _, one := range available.Spec.Addons {
		if one.Name == offered.Name {
			offered = one
		}
	}
	return catalogue.EntryOf(offered)
}

func (v *Verdict) add(about, reason, message, do string) {
	v.Findings = append(v.Findings, Finding{about, reason, message, do})
}

// excluded adds the versions that were requested and don't fit.
func (v *Verdict) excluded(available *v1.AddonCatalogue) {
	versions := v1.Addon{Name: v1.AddonName(v.Addon)}
	for _, one := range available.Status.Excluded {
		if one.Addon == v.Addon {
			versions.Versions = append(versions.Versions, v1.AddonVersion{Version: one.Version})
		}
	}
	var asked []string
	for _, one := range catalogue.EntryOf(versions).Choosable(v.Wanted) {
		asked = append(asked, one.Version)
	}
	for _, one := range available.Status.Excluded {
		if one.Addon == v.Addon && slices.Contains(asked, one.Version) {
			v.add("version "+one.Version, one.Reason, one.Message, AdviceOn(v1.ConditionCompatible, one.Reason).Do)
		}
	}
}

// installed adds what an installation's conditions, and its version, have to do with it.
func (v *Verdict) installed(one *v1.AddonInstallation, entry *catalogue.Entry) {
	about := "installation " + one.Name
	if _, refusal := catalogue.Select(entry, v.Wanted, one.Status.Version, catalogue.Platform{}, catalogue.SelectOptions{}); refusal != nil &&
		v.Version != "" && one.Status.Version != "" {
		v.add(about, v1.ReasonDowngradeRefused, refusal.Error(), AdviceOn(v1.ConditionCompatible, v1.ReasonDowngradeRefused).Do)
		v.Fits = false
	}
	for _, condition := range one.Status.Conditions {
		isAside := condition.Type == v1.ConditionDrifted || condition.Type == v1.ConditionDeletionBlocked
		if condition.Status != metav1.ConditionTrue && !isAside {
			v.add(about+", "+condition.Type, condition.Reason, condition.Message, AdviceOn(condition.Type, condition.Reason).Do)
			v.Fits = false
		}
	}
}

// Tables show a verdict.
func (v *Verdict) Tables() []Table {
	verdict := "no version fits"
	if v.Version != "" {
		verdict = "version " + v.Version + " fits"
	}
	table := NewTable("ABOUT>", "REASON", "MESSAGE>", "WHAT TO DO?>")
	for _, one := range v.Findings {
		table.Add(Of(one.About, one.Reason, one.Message, one.Do)...)
	}
	return []Table{Fields("Add-on", v.Addon, "Requested", v.Wanted, "Verdict", verdict), table}
}

// ShownIn is the table of an add-on's versions in a cluster: those that fit, the others with the reason, and which are installed.
func ShownIn(addon string, available *v1.AddonCatalogue, installations []v1.AddonInstallation) Table {
	table := NewTable("VERSION", "FITS", "INSTALLED AS", "WHY?>")
	as := map[string][]string{}
	for _, one := range installations {
		if string(one.Spec.AddonRef.Name) == addon && one.Status.Version != "" {
			as[one.Status.Version] = append(as[one.Status.Version], one.Name)
		}
	}
	for _, one := range available.Spec.Addons {
		for _, version := range one.Versions {
			if string(one.Name) == addon {
				table.Add(Of(version.Version, "yes", text.Names(as[version.Version], versionsShown), "")...)
			}
		}
	}
	for _, one := range available.Status.Excluded {
		if one.Addon == addon {
			table.Add(Of(one.Version, "no", text.Names(as[one.Version], versionsShown), one.Reason+": "+one.Message)...)
		}
	}
	return table
}

// Versions is the table of an add-on's versions in a merged catalogue.
func Versions(addon *v1.Addon) Table {
	table := NewTable("VERSION", "KUBERNETES?", "KKP?", "METHOD?", "NOTE>")
	for _, version := range addon.Versions {
		var kubernetes, kkp, method, note string
		if version.Constraints != nil {
			kubernetes, kkp = string(version.Constraints.K8sVersion), string(version.Constraints.KKPVersion)
		}
		if version.Template != nil {
			method = string(version.Template.Method)
		}
		if version.Deprecated != "" {
			note = "deprecated: " + version.Deprecated
		} else if version.Draft {
			note = "draft"
		}
		table.Add(Of(version.Version, kubernetes, kkp, method, note)...)
	}
	return table
}

// Form is the table of the fields that users fill in.
func Form(detail catalogue.VersionDetail) Table {
	table := NewTable("FIELD", "TYPE", "REQUIRED?", "DEFAULT?", "HELP?>")
	for _, field := range detail.FormSpec {
		preset := ""
		if field.Default != nil {
			preset = string(field.Default.Raw)
		}
		kind := strings.TrimSpace(string(field.Type) + " " + strings.Join(field.Options, ","))
		table.Add(Of(field.InternalName, kind, strconv.FormatBool(field.Required), preset, field.HelpText)...)
	}
	return table
}

// Addons are the names of all add-ons that an available catalogue offers or excludes.
func Addons(available *v1.AddonCatalogue) []string {
	var names []string
	for _, one := range available.Spec.Addons {
		names = append(names, string(one.Name))
	}
	for _, one := range available.Status.Excluded {
		names = append(names, one.Addon)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
