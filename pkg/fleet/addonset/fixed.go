package addonset

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Fixed are the immutable fields of an installation.
type Fixed struct{ Addon, TargetNamespace, ReleaseName string }

// CannotChange returns the reason and a message why an installation can't become the one that an item of a set, or of the list of core
// add-ons, requests. Argument known says whether a catalogue has the add-on of the item: if none has, the name is probably misspelt.
func CannotChange(installation string, was, is Fixed, known bool) (reason, message string) {
	if was.Addon != is.Addon && !known {
		unknown := values.UnknownAddon(is.Addon, []string{was.Addon})
		if !strings.HasSuffix(unknown, "?") {
			unknown += "."
		}
		return v1.ReasonAddonUnknown, fmt.Sprintf("%s Installation %q has add-on %q, which can't be changed: for another add-on, give the "+
			"item another name", unknown, installation, was.Addon)
	}
	field, before, after := "releaseName", was.ReleaseName, is.ReleaseName
	switch {
	case was.Addon != is.Addon:
		field, before, after = "addonRef.name", was.Addon, is.Addon
	case was.TargetNamespace != is.TargetNamespace:
		field, before, after = "targetNamespace", was.TargetNamespace, is.TargetNamespace
	}
	return v1.ReasonImmutableField, fmt.Sprintf("%s of installation %q can't be changed from %q to %q: undo the change, or give the item "+
		"another name", field, installation, before, after)
}

// ChangedAddons warns about items that clusters have and that name another add-on than before an edit; before is nil for a new set.
func ChangedAddons(before, after *v1.AddonSet) (warnings []string) {
	if before == nil || before.Status.Counts == nil || before.Status.Counts.Selected == 0 {
		return nil
	}
	was := map[v1.AddonName]v1.AddonName{}
	for i := range before.Spec.Addons {
		was[before.Spec.Addons[i].Name] = before.Spec.Addons[i].AddonRef.Name
	}
	for i := range after.Spec.Addons {
		item := &after.Spec.Addons[i]
		if previous := was[item.Name]; previous != "" && previous != item.AddonRef.Name {
			warnings = append(warnings, fmt.Sprintf("item %q: clusters keep add-on %q, since the add-on of an item can't be changed: "+
				"to install another add-on, give the item another name", item.Name, previous))
		}
	}
	return warnings
}

// ChangedSources warns about items that clusters have and whose values no longer come from a source: clusters lose the values of the
// source that the edit drops. Argument before is nil for a new set.
func ChangedSources(before, after *v1.AddonSet) (warnings []string) {
	if before == nil || before.Status.Counts == nil || before.Status.Counts.Selected == 0 {
		return nil
	}
	was := map[v1.AddonName][]string{}
	for i := range before.Spec.Addons {
		was[before.Spec.Addons[i].Name] = sourcesOf(&before.Spec.Addons[i])
	}
	for i := range after.Spec.Addons {
		item := &after.Spec.Addons[i]
		is := sourcesOf(item)
		dropped := slices.DeleteFunc(slices.Clone(was[item.Name]), func(source string) bool { return slices.Contains(is, source) })
		if len(dropped) == 0 {
			continue
		}
		left := "from no source of the set"
		if len(is) > 0 {
			left = "from " + strings.Join(is, ", ")
		}
		warnings = append(warnings, fmt.Sprintf("item %q: its values no longer come from %s, but %s: clusters that have the item lose the "+
			"values of the dropped source", item.Name, strings.Join(dropped, ", "), left))
	}
	return warnings
}

// sourcesOf are the fields from which an item gets values, each once.
func sourcesOf(item *v1.AddonSetItem) []string {
	var sources []string
	add := func(isSet bool, source string) {
		if isSet && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	add(item.Values != nil && string(item.Values.Raw) != "{}", "values")
	for _, from := range item.ValuesFrom {
		add(from.SecretRef != nil, "valuesFrom.secretRef")
		add(from.ConfigMapRef != nil, "valuesFrom.configMapRef")
		add(from.ProviderRef != nil, "valuesFrom.providerRef")
		add(from.ObjectRef != nil, "valuesFrom.objectRef")
	}
	add(item.ValuesTemplate != "", "valuesTemplate")
	add(item.PlatformSecretRef != nil, "platformSecretRef")
	return sources
}
