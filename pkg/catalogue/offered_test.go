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

// F3: Red when authors of long names fill what every cluster is offered (no bound in Merge, or in Available), when another author's add-on
// is left out with theirs, when an honest platform of 5,000 versions is cut, or when the refusal names nobody.
func TestNobodyCrowdsOthersOutOfTheOffer(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("honest-%03d: 1.0.0 1.1.0 1.2.0 1.3.0 1.4.0 1.5.0 1.6.0 1.7.0 1.8.0 1.9.0", i))
	}
	honest, innocent := authored("honest", v1.CatalogueCustom, 0, lines...), authored("zzz", v1.CatalogueCustom, 0, "innocent: 1.0.0")
	if refused := catalogue.Merge(sourcesOf(t, honest, innocent)).Refused; len(refused) > 0 {
		t.Fatalf("of 5,001 usual versions %d add-ons are refused", len(refused))
	}
	greedy := longNamed("greedy", 26)
	merged := catalogue.Merge(sourcesOf(t, innocent, greedy, longNamed("greedier", 26)))
	if merged.Addons["innocent"] == nil {
		t.Error("another author's add-on is refused")
	}
	refused := 0
	for name, problem := range merged.Refused {
		refused++
		if !strings.HasPrefix(name, "gree") || len(problem.Contributors) != 1 || !strings.Contains(problem.Error(), name) {
			t.Errorf("%s is refused: %v", name, problem)
		}
	}
	if left := len(merged.Addons); refused == 0 || refused+left != 53 || left < 10 {
		t.Errorf("%d add-ons are refused, %d are left", refused, left)
	}

	var entries []*catalogue.Entry // as they were distributed before the bound
	for _, object := range []*v1.AddonCatalogue{greedy, innocent} {
		for _, addon := range object.Spec.Addons {
			origins := map[string]catalogue.Origin{}
			for _, version := range addon.Versions {
				origins[version.Version] = catalogue.Origin{Catalogue: object.Name}
			}
			text, err := json.Marshal(origins)
			if err != nil {
				t.Fatal(err)
			}
			stored := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{addon}}}
			stored.Annotations = map[string]string{v1.AnnotationVersions: string(text)}
			entry, err := catalogue.NewEntry(stored)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, entry)
		}
	}
	offer, err := catalogue.Available(entries, catalogue.Platform{K8sVersion: "1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	size, err := json.Marshal(offer.Addons)
	if err != nil {
		t.Fatal(err)
	}
	if len(size) > catalogue.OfferedLimit+64<<10 || len(offer.LeftOut) == 0 || len(offer.LeftOut)+len(offer.Addons) != 27 {
		t.Errorf("the offer has %d bytes and %d add-ons; %d are left out", len(size), len(offer.Addons), len(offer.LeftOut))
	}
	if last := offer.Addons[len(offer.Addons)-1].Name; last != "innocent" {
		t.Errorf("the last of it is %s", last)
	}
}
