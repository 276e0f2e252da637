package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Demand is a version of an add-on that a caller asks for.
type Demand struct {
	// Addon is its name. Version is exact, a range, or empty: the newest that fits.
	Addon, Version string
	// Installed is the installed version; empty for none. Downgrade allows a lower one.
	Installed string
	Downgrade bool
}

// ParseDemand reads ADDON or ADDON@VERSION. Errors: ExitUsage.
func ParseDemand(argument string) (Demand, error) {
	addon, version, hasVersion := strings.Cut(argument, "@")
	if err := CheckName("add-on", addon); err != nil {
		return Demand{}, err
	}
	if hasVersion && version == "" {
		return Demand{}, Fail(ExitUsage, "write it like prometheus@1.2.0 or prometheus@1.x", "there is no version after the \"@\"")
	}
	return Demand{Addon: addon, Version: version}, CheckVersion(version)
}

// CheckName refuses what can't be the name of an object. Errors: ExitUsage.
func CheckName(of, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Fail(ExitUsage, "a name has lower-case letters, digits, hyphens and dots", "%q is not a valid name of an %s", name, of)
	}
	return nil
}

// CheckVersion refuses a range that can't be read. Errors: ExitUsage.
func CheckVersion(version string) error {
	if !catalogue.IsRange(version) {
		return nil
	}
	if _, err := catalogue.ParseRange(version); err != nil {
		return &Error{Code: ExitUsage, Hint: `write it like "1.2.3", ">= 1.34, < 1.38" or "1.x"`, Err: err}
	}
	return nil
}

// Choose is the version of an available catalogue that a demand selects. It is empty if the catalogue does not list all
// versions, and so does not show it. A range may select a deprecated version here, which a manager passes over. Errors:
// ExitNotFound with the nearest name, ExitNo with the reason why nothing fits.
func Choose(available *v1.AddonCatalogue, demand Demand) (string, error) {
	if at := slices.IndexFunc(available.Spec.Addons, func(one v1.Addon) bool { return string(one.Name) == demand.Addon }); at >= 0 {
		selection, refusal := selectIn(available.Spec.Addons[at], demand)
		if refusal == nil {
			return selection.Version, nil
		}
		if _, isLower := errors.AsType[*catalogue.DowngradeRefusedError](refusal); isLower {
			return "", &Error{Code: ExitRefused, Hint: "or add --allow-downgrade", Err: refusal}
		}
		if err := unfit(available, demand); err != nil {
			return "", err
		}
		return "", unlessCut(available, &Error{Code: ExitNotFound, Err: refusal})
	}
	if err := unfit(available, demand); err != nil {
		return "", err
	}
	names := NamesOf(available.Spec.Addons, func(one *v1.Addon) string { return string(one.Name) })
	return "", unlessCut(available, Fail(ExitNotFound, nearest(demand.Addon, names), "the cluster is offered no add-on %q", demand.Addon))
}

func selectIn(addon v1.Addon, demand Demand) (*v1.AddonVersion, catalogue.Refusal) {
	selection, refusal := catalogue.Select(catalogue.EntryOf(addon), demand.Version, demand.Installed, catalogue.Platform{},
		catalogue.SelectOptions{AllowDowngrade: demand.Downgrade})
	if refusal != nil {
		return nil, refusal
	}
	return selection.Version, nil
}

// unfit says why the version that a demand would select does not fit the cluster; nil if there is none.
func unfit(available *v1.AddonCatalogue, demand Demand) error {
	addon, why := v1.Addon{Name: v1.AddonName(demand.Addon)}, map[string]string{}
	for _, one := range available.Status.Excluded {
		if one.Addon == demand.Addon && (one.Reason != v1.ExcludedDraft || catalogue.Key(one.Version) != catalogue.Key(demand.Version)) {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: one.Version})
			why[one.Version] = one.Message
		}
	}
	demand.Downgrade = true
	selected, _ := selectIn(addon, demand)
	if selected == nil {
		return nil
	}
	return Fail(ExitNo, "`kubectl addons available` lists what fits", "version %q of add-on %q does not fit the cluster: %s",
		selected.Version, demand.Addon, why[selected.Version])
}

// unlessCut drops a refusal if the available catalogue does not list all versions that fit.
func unlessCut(available *v1.AddonCatalogue, refusal error) error {
	ready := meta.FindStatusCondition(available.Status.Conditions, v1.ConditionReady)
	if ready != nil && strings.Contains(ready.Message, catalogue.NotListed) {
		return nil
	}
	return refusal
}

// CheckForm checks values against the form of a version, if the caller may read merged catalogues; otherwise admission
// does. Errors: ExitRefused with the field and what it may have.
func CheckForm(ctx context.Context, seed *Platform, demand Demand, given map[string]any) error {
	version, err := Merged(ctx, seed, demand)
	if err != nil {
		return err
	}
	return CheckFormOf(version, demand.Addon, given)
}

// CheckFormOf is CheckForm for the version of an add-on; nil: it is unknown.
func CheckFormOf(version *v1.AddonVersion, addon string, given map[string]any) error {
	if version == nil || version.Template == nil {
		return nil
	}
	if err := values.CheckForm(version.Template.FormSpec, given, effective(version, given)); err != nil {
		return Fail(ExitRefused, "correct the values", "version %q of add-on %q: %w", version.Version, addon, err)
	}
	return nil
}

// Merged is a version as a merged catalogue has it; nil if the caller may not list these, or none has it.
func Merged(ctx context.Context, seed *Platform, demand Demand) (*v1.AddonVersion, error) {
	var found v1.AddonCatalogueList
	err := seed.List(ctx, &found, client.MatchingLabels{v1.LabelRole: v1.RoleMerged}, client.MatchingFields{"metadata.name": demand.Addon})
	if err != nil && exitCode(err) != ExitForbidden {
		return nil, err
	}
	return versionIn(found.Items, demand.Version), nil
}

// versionIn is a version of the only merged catalogue; nil if it is unknown, which the managers report.
func versionIn(merged []v1.AddonCatalogue, version string) *v1.AddonVersion {
	if len(merged) != 1 {
		return nil
	}
	entry, err := catalogue.NewEntry(&merged[0])
	if err != nil {
		return nil
	}
	found, _ := entry.Version(version)
	return found
}

// effective are all values of a version, with those that are given; nil if a template or objects give some of them.
func effective(version *v1.AddonVersion, given map[string]any) map[string]any {
	own, err := ReadValues(version.Values)
	if err != nil || version.ValuesTemplate != "" || len(version.ValuesFrom) > 0 {
		return nil
	}
	defaults, err := values.FormDefaults(version.Template.FormSpec)
	if err != nil {
		return nil
	}
	merged, _, err := values.Merge([]values.Layer{{Values: own}, {Values: defaults}, {Values: given}})
	if err != nil {
		return nil
	}
	return merged
}

// Installation reads an installation by its name or its add-on: of the cluster of --cluster, else of the namespace of -n or
// of the context. Errors: those of Platform.Installation.
func (t *Tool) Installation(ctx context.Context, seed *Platform, name string) (*v1.AddonInstallation, error) {
	of, err := t.Place(ctx, seed)
	if err != nil {
		return nil, err
	}
	return seed.Installation(ctx, of, name)
}

// Named is Installation for a verb that writes: the name of an add-on is not enough.
func (t *Tool) Named(ctx context.Context, seed *Platform, name string) (*v1.AddonInstallation, error) {
	one, err := t.Installation(ctx, seed, name)
	if err == nil && one.Name != name && one.Name != ClusterOf(one).NameOf(name) {
		return nil, Fail(ExitNotFound, fmt.Sprintf("did you mean %q?", one.Name), "namespace %q has no installation %q of this cluster",
			one.Namespace, name)
	}
	return one, err
}

// ClusterOf is the cluster of an installation: KKP's of its namespace, or one of Cluster API.
func ClusterOf(one *v1.AddonInstallation) target.Ref {
	of := target.InstalledIn(one)
	if of.Name != "" && of.Namespace != kkpPrefix+of.Name {
		of.Kind = target.KindClusterAPI
	}
	return of
}
