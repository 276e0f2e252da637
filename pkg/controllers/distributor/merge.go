package distributor

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// merger remembers the last merge: the sources are usually the same.
type merger struct {
	sources []*catalogue.Source
	claims  catalogue.Claims
	merged  catalogue.Merged
	// uses are the versions with sources, by catalogue.
	uses map[string][]catalogue.SourceUse
}

func (r *Reconciler) merge(_ context.Context, f *facts) *loop.Outcome {
	sources := sourcesOf(f.readings)
	if r.merger.merged.Addons == nil || !slices.Equal(r.merger.sources, sources) || !reflect.DeepEqual(r.merger.claims, f.claims) {
		before := r.merger.merged
		r.merger.sources, r.merger.claims, r.merger.merged = sources, f.claims, catalogue.Merge(sources, f.claims)
		f.isNewMerge = true
		r.merger.uses = catalogue.SourcesOf(r.merger.merged)
		r.announce(f.readings, catalogue.Changes(before, r.merger.merged))
	}
	f.merged, f.sources = r.merger.merged, r.merger.uses
	return nil
}

// sourcesOf are the sources, sorted, since a cache lists in any order. When a catalogue changes, it gets a new source.
func sourcesOf(readings []*reading) (sources []*catalogue.Source) {
	for _, reading := range readings {
		if reading.offered != nil {
			sources = append(sources, reading.offered)
		}
	}
	slices.SortFunc(sources, func(a, b *catalogue.Source) int { return strings.Compare(a.Name, b.Name) })
	return sources
}

// changesNamed is how many versions an event names; it counts all of them.
const changesNamed = 5

// announce reports on authored catalogues, or those in git, which versions have changed content.
func (r *Reconciler) announce(readings []*reading, all []catalogue.Change) {
	if len(all) == 0 {
		return
	}
	authors := map[string]*v1.AddonCatalogue{}
	byUID := map[types.UID]*v1.AddonCatalogue{}
	for _, reading := range readings {
		byUID[reading.object.UID] = reading.object
	}
	for _, reading := range readings {
		authors[reading.object.Name] = reading.object
		if parent := byUID[reading.parent()]; parent != nil {
			authors[reading.object.Name] = parent
		}
	}
	changes := map[*v1.AddonCatalogue][]catalogue.Change{}
	for _, change := range all {
		if author := authors[change.Catalogue]; author != nil {
			changes[author] = append(changes[author], change)
		}
	}
	for author, list := range changes {
		r.announceChanges(author, list)
	}
}

// announceChanges reports changes of content, which reach installations, separately from other changes.
func (r *Reconciler) announceChanges(author *v1.AddonCatalogue, changes []catalogue.Change) {
	content := slices.DeleteFunc(slices.Clone(changes), func(change catalogue.Change) bool { return change.About })
	about := slices.DeleteFunc(changes, func(change catalogue.Change) bool { return !change.About })
	if len(content) > 0 {
		r.recorder.Eventf(author, nil, corev1.EventTypeWarning, v1.EventChanged, "Merge", "%s", text.Message(
			"content changed under the same version, and installations are updated to it: "+namesOf(content)))
	}
	if len(about) > 0 {
		r.recorder.Eventf(author, nil, corev1.EventTypeNormal, v1.EventChanged, "Merge", "%s", text.Message(
			"constraints, deprecation or onClusterDeletion changed, but no content: clusters are evaluated again for "+namesOf(about)))
	}
}

func namesOf(changes []catalogue.Change) string {
	var names []string
	for _, change := range changes[:min(len(changes), changesNamed)] {
		names = append(names, fmt.Sprintf("%s %s", change.Addon, change.Version))
	}
	if more := len(changes) - changesNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
