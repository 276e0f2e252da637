package catalogue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/golden"
)

// TestMergeStory: Catalogues are added, changed and removed. The test checks the result for a seed after each:
// versions with their catalogue, and the messages for authors.
func TestMergeStory(t *testing.T) {
	const custom, core = v1.CatalogueCustom, v1.CatalogueCore
	story := golden.NewStory("A merge: what seeds get after each change of a catalogue")
	var all []*v1.AddonCatalogue
	owners := catalogue.Owners{}
	made := int64(0)
	set := func(step string, object *v1.AddonCatalogue) {
		t.Helper()
		made++
		object.CreationTimestamp = metav1.NewTime(time.Unix(made, 0))
		if at := slices.IndexFunc(all, func(have *v1.AddonCatalogue) bool { return have.Name == object.Name }); at >= 0 {
			object.CreationTimestamp = all[at].CreationTimestamp
			all = slices.Delete(all, at, at+1)
		}
		all = append(all, object)
		story.Add(step, storyOf(t, &owners, all)...)
	}
	set("Catalogue tools comes.", authored("tools", custom, 0, "loki: 1.0.0 1.1.0", "tempo: 2.0.0"))
	set("Catalogue team comes, with a version of tools and one of its own.", authored("team", custom, 0, "loki: 1.1.0 1.2.0"))
	set("Team raises its priority.", authored("team", custom, 5, "loki: 1.1.0 1.2.0"))
	taking := authored("team", custom, 5, "loki: 1.1.0 1.2.0")
	taking.Annotations = map[string]string{v1.AnnotationTakeOver: "loki"}
	set("Team may take loki over.", taking)
	set("Catalogue platform makes loki a core add-on.", authored("platform", core, 0, "loki: 1.1.0"))
	set("Tools withdraws version 1.0.0.", authored("tools", custom, 0, "loki: 1.1.0", "tempo: 2.0.0"))
	all = slices.DeleteFunc(all, func(object *v1.AddonCatalogue) bool { return object.Name == "platform" })
	story.Add("Platform goes.", storyOf(t, &owners, all)...)
	story.Match(t, "testdata/merge.golden")
}

// storyOf describes a merge with the owners of the previous merge, and the resulting owners.
func storyOf(t *testing.T, owners *catalogue.Owners, objects []*v1.AddonCatalogue) []string {
	t.Helper()
	merged := catalogue.Merge(sourcesOf(t, objects...), claimsOf(*owners, objects...))
	*owners = merged.Owners
	lines := story(merged)
	for _, name := range slices.Sorted(maps.Keys(merged.Owners)) {
		lines = append(lines, name+" belongs to "+strings.Join(merged.Owners[name], ", then "))
	}
	return lines
}
