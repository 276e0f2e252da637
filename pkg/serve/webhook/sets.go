package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Sets checks AddonSets: those of users on the master, and their copies on a seed. The charts' policies restrict
// their writers and check the confirmation of deletions.
type Sets struct {
	// Master is the result of Master; nil on a seed, whose copies are checked one by one.
	Master    client.Reader
	Namespace string
	// Seed are the clusters of a seed, for sets of users if the master is that seed too; nil on the master.
	Seed *SeedClusters
}

// Handle implements admission.Handler.
func (s *Sets) Handle(ctx context.Context, request admission.Request) admission.Response {
	found, err := decode[v1.AddonSet](request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case request.Operation == admissionv1.Delete, found.after == nil, found.after.DeletionTimestamp != nil:
		return allowed()
	case sameSet(found):
		return allowed(droppedNulls(request)...)
	}
	if err := addonset.Validate(found.after); err != nil {
		return invalid(request, found.after, err)
	}
	answer := s.placed(ctx, request, found)
	return answer.WithWarnings(droppedNulls(request)...)
}

// placed answers for a set that is valid alone.
func (s *Sets) placed(ctx context.Context, request admission.Request, found change[v1.AddonSet]) admission.Response {
	switch {
	case found.after.Labels[v1.LabelRole] != "":
		return allowed()
	case found.after.Namespace != s.Namespace:
		return forbidden(fmt.Sprintf("%s: sets are read in namespace %q of the master only: create it there",
			name(request, found.after), s.Namespace))
	case s.Seed != nil && isSeedOnly(ctx, s.Seed.Uncached, s.Namespace):
		return allowed(fmt.Sprintf("ignored: sets that users write are read in namespace %q of the master only", s.Namespace))
	case s.Master == nil:
		return allowed(s.Seed.lost(ctx, found)...)
	}
	return s.amongOthers(ctx, request, found)
}

func sameSet(found change[v1.AddonSet]) bool {
	return found.before != nil && equality.Semantic.DeepEqual(found.before.Spec, found.after.Spec)
}

// amongOthers refuses a set beyond the maximal number of a platform, and items that no cluster can get. It warns about a second set of
// type Core.
func (s *Sets) amongOthers(ctx context.Context, request admission.Request, found change[v1.AddonSet]) admission.Response {
	var all v1.AddonSetList
	if err := s.Master.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
		return allowed("it is not known which other sets exist: the master's objects can't be read")
	}
	if found.before == nil && len(all.Items) >= addonset.MaxSets {
		return forbidden(fmt.Sprintf("%s: the platform has %d sets, and at most %d are used: move its items to another",
			name(request, found.after), len(all.Items), addonset.MaxSets))
	}
	warnings, err := s.checkItems(ctx, found)
	if err != nil {
		return invalid(request, found.after, err)
	}
	return allowed(slices.Concat(
		otherCore(found.after, all.Items), addonset.EmptyGroups(found.before, found.after), warnings,
		addonset.ChangedAddons(found.before, found.after), addonset.ChangedSources(found.before, found.after))...)
}

// checkItems refuses items that no cluster can get, as far as the master's catalogues show. It returns the warnings that installations
// get on a seed: fitting versions depend on the cluster. An item that an edit leaves as it is gets warnings only, since a catalogue may
// have changed after it.
func (s *Sets) checkItems(ctx context.Context, found change[v1.AddonSet]) (warnings []string, err error) {
	var all v1.AddonCatalogueList
	if err := s.Master.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
		return []string{"it is not known which add-ons exist: the master's objects can't be read"}, nil //nolint:nilerr // a warning
	}
	offered, core := map[string][]*v1.Addon{}, map[string]bool{}
	for i := range all.Items {
		spec := &all.Items[i].Spec
		if role := all.Items[i].Labels[v1.LabelRole]; role != "" && role != v1.RoleGenerated {
			continue
		}
		for j := range spec.Addons {
			name := string(spec.Addons[j].Name)
			offered[name], core[name] = append(offered[name], &spec.Addons[j]), core[name] || spec.Type == v1.CatalogueCore
		}
	}
	known := slices.Sorted(maps.Keys(offered))
	for i := range found.after.Spec.Addons {
		item := &found.after.Spec.Addons[i]
		field, problem := unmet(item, offered, core[string(item.AddonRef.Name)])
		if problem != "" && !isPlacedAsBefore(found.before, item) {
			return nil, &addonset.FieldError{Place: fmt.Sprintf("spec.addons[%d] (%q).%s", i, item.Name, field), Problem: problem}
		}
		told := warningsOf(item, offered, core[string(item.AddonRef.Name)], known)
		if problem != "" {
			told = append(told, problem)
		}
		for _, one := range told {
			warnings = append(warnings, fmt.Sprintf("item %q: %s", item.Name, one))
		}
	}
	return warnings, nil
}

// unmet is what an item of a known add-on lacks in every cluster; empty if nothing.
func unmet(item *v1.AddonSetItem, offered map[string][]*v1.Addon, isCore bool) (field, problem string) {
	name := string(item.AddonRef.Name)
	hasNamespace := func(addon *v1.Addon) bool { return addon.TargetNamespace != "" }
	switch {
	case len(offered[name]) == 0:
		return "", ""
	case isCore:
		return "addonRef.name", fmt.Sprintf("add-on %q is of a Core catalogue: core add-ons belong to the set of type Core, so remove the "+
			"item", name)
	case item.TargetNamespace == "" && !slices.ContainsFunc(offered[name], hasNamespace):
		return "targetNamespace", fmt.Sprintf("it is missing, and the catalogue names none for add-on %q: name a namespace of the user "+
			"clusters", name)
	}
	return "", ""
}

// isPlacedAsBefore says whether an edit changes neither add-on nor target namespace of an item.
func isPlacedAsBefore(before *v1.AddonSet, item *v1.AddonSetItem) bool {
	return before != nil && slices.ContainsFunc(before.Spec.Addons, func(was v1.AddonSetItem) bool {
		return was.Name == item.Name && was.AddonRef.Name == item.AddonRef.Name && was.TargetNamespace == item.TargetNamespace
	})
}

func warningsOf(item *v1.AddonSetItem, offered map[string][]*v1.Addon, isCore bool, known []string) (warnings []string) {
	given, _ := values.Decode(rawOf(item.Values)) // it was validated
	name, wanted := string(item.AddonRef.Name), item.AddonRef.Version
	switch {
	case len(offered[name]) == 0:
		return append(credentialWarnings(given), values.UnknownAddon(name, known))
	case isCore:
		return credentialWarnings(given)
	}
	isExact := wanted != "" && !catalogue.IsRange(wanted)
	var versions []string
	var newest *v1.AddonVersion
	for _, addon := range offered[name] {
		for i := range addon.Versions {
			version := &addon.Versions[i]
			versions = append(versions, version.Version)
			if canChoose(version, wanted, isExact) && (newest == nil || catalogue.Compare(newest.Version, version.Version) < 0) {
				newest = version
			}
		}
	}
	warnings = credentialWarnings(given)
	switch {
	case newest == nil && isExact:
		return append(warnings, fmt.Sprintf("no catalogue has version %q of add-on %q; known versions: %s",
			wanted, name, text.Names(versions, knownShown)))
	case newest == nil || newest.Template == nil:
		return warnings
	}
	base, _ := values.Decode(rawOf(newest.Values))
	elsewhere := catalogue.TraitsOf(newest.Template.Method).IsChart || newest.ValuesTemplate != "" || len(newest.ValuesFrom) > 0
	return append(warnings, values.UnknownKeys(newest.Template.FormSpec, base, given, elsewhere)...)
}

// canChoose says whether an item that requests an exact version, a range or any may get this one. Ranges choose
// neither drafts nor deprecated versions.
func canChoose(version *v1.AddonVersion, wanted string, isExact bool) bool {
	if isExact {
		return catalogue.Key(wanted) == catalogue.Key(version.Version)
	}
	return !version.Draft && version.Deprecated == ""
}

// knownShown is how many versions a warning names.
const knownShown = 5

// otherCore warns that of two Core sets only the first counts.
func otherCore(set *v1.AddonSet, all []v1.AddonSet) []string {
	if set.Spec.Type != v1.AddonSetCore {
		return nil
	}
	first := set
	var other *v1.AddonSet
	for i := range all {
		one := &all[i]
		if one.Name == set.Name || one.Spec.Type != v1.AddonSetCore || one.DeletionTimestamp != nil {
			continue
		}
		other = one
		if isBefore(one, first) {
			first = one
		}
	}
	switch {
	case other == nil:
		return nil
	case first == set:
		return []string{fmt.Sprintf("set %q is of type Core too: by priority, then age, only this one is used from now on", other.Name)}
	}
	return []string{fmt.Sprintf("set %q is of type Core too: by priority, then age, only that one is used", first.Name)}
}

// isBefore treats a set without age as the youngest.
func isBefore(one, other *v1.AddonSet) bool {
	if one.Spec.Priority == other.Spec.Priority && other.CreationTimestamp.IsZero() {
		return true
	}
	return addonset.Compare(one, other) < 0
}
