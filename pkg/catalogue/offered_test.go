package catalogue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// longNamed has add-ons of 128 versions with names of 117 bytes.
func longNamed(name string, addons int) *v1.AddonCatalogue {
	var lines []string
	for i := range addons {
		var versions []string
		for j := range 128 {
			versions = append(versions, fmt.Sprintf("1.0.%d-%s", j, strings.Repeat("x", 110)))
		}
		lines = append(lines, fmt.Sprintf("%s-%d: %s", name, i, strings.Join(versions, " ")))
	}
	return authored(name, v1.CatalogueCustom, 1000, lines...)
}

// stored are the entries of catalogues, each merged alone.
func stored(t *testing.T, objects ...*v1.AddonCatalogue) (entries []*catalogue.Entry) {
	t.Helper()
	for _, merged := range asBefore(sourcesOf(t, objects...)).Addons {
		object := &v1.AddonCatalogue{Spec: merged.Spec}
		object.Annotations = map[string]string{v1.AnnotationVersions: merged.OriginsJSON()}
		entry, err := catalogue.NewEntry(object)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// TestNobodyCrowdsOthersOutOfTheOffer (F3) fails when authors of long names fill each cluster's available catalogue
// (no limit in Available), when another author's add-on, or the versions of an add-on that they add to, are left out
// with theirs, when an honest platform of 5,000 versions is cut, or when the result varies.
func TestNobodyCrowdsOthersOutOfTheOffer(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("honest-%03d: 1.0.0 1.1.0 1.2.0 1.3.0 1.4.0 1.5.0 1.6.0 1.7.0 1.8.0 1.9.0", i))
	}
	offer := func(objects ...*v1.AddonCatalogue) catalogue.Availability {
		offer, err := catalogue.Available(stored(t, objects...), catalogue.Platform{K8sVersion: "1.36.0"})
		if err != nil {
			t.Fatal(err)
		}
		return offer
	}
	honest, innocent := authored("honest", v1.CatalogueCustom, 0, lines...), authored("zzz", v1.CatalogueCustom, 0, "innocent: 1.0.0")
	if found := offer(honest, innocent); found.LeftOut > 0 || found.Versions != 5001 {
		t.Fatalf("of 5,001 usual versions %d are left out", found.LeftOut)
	}
	greedy := longNamed("greedy", 26)
	greedy.Spec.Addons = append(greedy.Spec.Addons, v1.Addon{Name: "innocent", Versions: []v1.AddonVersion{
		{Version: "2.0.0-" + strings.Repeat("y", 110), ValuesTemplate: "from: greedy"},
	}})
	found := offer(innocent, greedy, longNamed("greedier", 26))
	size, err := json.Marshal(found.Addons)
	if err != nil {
		t.Fatal(err)
	}
	if len(size) > catalogue.OfferedLimit+64<<10 || found.LeftOut < 4000 || found.Versions < 1000 {
		t.Errorf("the offer has %d bytes and %d versions; %d are left out", len(size), found.Versions, found.LeftOut)
	}
	last := found.Addons[len(found.Addons)-1]
	if versions := last.Versions; last.Name != "innocent" || versions[len(versions)-1].Version != "1.0.0" {
		t.Errorf("the last of it is %s with %d versions", last.Name, len(versions))
	}
	for range 5 {
		if again := offer(innocent, greedy, longNamed("greedier", 26)); again.Digest != found.Digest {
			t.Fatal("the same catalogues give another offer")
		}
	}
}
