package addon

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// statusOf is this controller's part of an available catalogue's status.
func statusOf(object *v1.AddonCatalogue, offer *catalogue.Availability) v1.AddonCatalogueStatus {
	ours := v1.AddonCatalogueStatus{
		ObservedGeneration: object.Generation,
		Addons:             int32(len(offer.Addons)), // one for each merged object
		Versions:           offer.Versions,
		Excluded:           offer.Excluded,
		ExcludedCount:      offer.ExcludedCount,
	}
	if before := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionReady); before != nil {
		ours.Conditions = append(ours.Conditions, *before)
	}
	conditions.True(&ours.Conditions, object.Generation, v1.ConditionReady, v1.ReasonSelected, summary(offer))
	return ours
}

// appliedStatus has all our fields, also empty ones: other clients could set fields that are not applied.
func appliedStatus(ours v1.AddonCatalogueStatus) map[string]any {
	return map[string]any{
		"conditions": ours.Conditions, "observedGeneration": ours.ObservedGeneration,
		"addons": ours.Addons, "versions": ours.Versions,
		"excluded": append([]v1.ExcludedVersion{}, ours.Excluded...), "excludedCount": ours.ExcludedCount,
	}
}

func summary(offer *catalogue.Availability) string {
	leftOut := ""
	if offer.LeftOut > 0 {
		leftOut = fmt.Sprintf("; %s %s, since names take at most %d KiB: the query endpoint lists all",
			text.Count(offer.LeftOut, "version"), catalogue.NotListed, catalogue.OfferedLimit>>10)
	}
	return fmt.Sprintf("fit for this cluster: %s of %s; versions that do not fit: %d; "+
		"versions of core add-ons, which are not offered: %d",
		text.Count(int(offer.Versions), "version"), text.Count(len(offer.Addons), "add-on"), offer.ExcludedCount-offer.CoreCount,
		offer.CoreCount) + leftOut
}

// announce reports a changed offer for a cluster.
func (r *Reconciler) announce(object *v1.AddonCatalogue, outdated *v1.AddonCatalogueSpec, offer *catalogue.Availability) {
	shown := summary(offer)
	if outdated != nil {
		changes := changesBetween(outdated.Addons, offer.Addons)
		if changes == "" {
			return
		}
		shown += "; " + changes
	}
	r.Recorder.Eventf(object, nil, "Normal", v1.EventOffered, "Offer", "%s", text.Message(shown))
}

// changesBetween names the versions that were added and removed; empty for none.
func changesBetween(before, after []v1.Addon) string {
	var parts []string
	for _, changes := range []struct {
		word     string
		versions []string
	}{{"new", versionsBeyond(after, before)}, {"gone", versionsBeyond(before, after)}} {
		if len(changes.versions) > 0 {
			parts = append(parts, changes.word+": "+text.Names(changes.versions, mostNamed))
		}
	}
	return strings.Join(parts, "; ")
}

// versionsBeyond are versions of the first add-ons that the others don't have.
func versionsBeyond(some, others []v1.Addon) []string {
	known := map[string]bool{}
	for _, addon := range others {
		for _, version := range addon.Versions {
			known[string(addon.Name)+" "+version.Version] = true
		}
	}
	var beyond []string
	for _, addon := range some {
		for _, version := range addon.Versions {
			if name := string(addon.Name) + " " + version.Version; !known[name] {
				beyond = append(beyond, name)
			}
		}
	}
	return beyond
}

// mostNamed is how many items of a list a message names.
const mostNamed = 5
