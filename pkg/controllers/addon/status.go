package addon

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/text"
)

// statusOf is our part of an available catalogue's status. The condition's time stays while it says the same.
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

// claim is our part of the status with every field that is ours, also those that are empty: what is not applied could be
// filled in by others, and would not be noticed.
func claim(ours v1.AddonCatalogueStatus) map[string]any {
	return map[string]any{
		"conditions": ours.Conditions, "observedGeneration": ours.ObservedGeneration,
		"addons": ours.Addons, "versions": ours.Versions,
		"excluded": append([]v1.ExcludedVersion{}, ours.Excluded...), "excludedCount": ours.ExcludedCount,
	}
}

func summary(offer *catalogue.Availability) string {
	return fmt.Sprintf("fit for this cluster: %s of %s; left out: %s", text.Count(int(offer.Versions), "version"),
		text.Count(len(offer.Addons), "add-on"), text.Count(int(offer.ExcludedCount), "version"))
}

// announce tells that a cluster is offered other versions than before.
func (r *Reconciler) announce(object *v1.AddonCatalogue, outdated *v1.AddonCatalogueSpec, offer *catalogue.Availability) {
	shown := summary(offer)
	if outdated != nil {
		news := newsOf(outdated.Addons, offer.Addons)
		if news == "" {
			return
		}
		shown += "; " + news
	}
	r.Recorder.Eventf(object, nil, "Normal", v1.EventOffered, "Offer", "%s", text.Message(shown))
}

// newsOf says which versions came and which went; empty for none.
func newsOf(before, after []v1.Addon) string {
	var parts []string
	for _, news := range []struct {
		word     string
		versions []string
	}{{"new", versionsBeyond(after, before)}, {"gone", versionsBeyond(before, after)}} {
		if len(news.versions) > 0 {
			parts = append(parts, news.word+": "+text.Names(news.versions, mostNamed))
		}
	}
	return strings.Join(parts, "; ")
}

// versionsBeyond are those of some add-ons that others don't have.
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

// mostNamed is how many of a list a message names.
const mostNamed = 5
