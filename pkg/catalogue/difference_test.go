package catalogue_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Red when a difference is missing, is said to be another one, or is found where nothing differs.
func TestDifferences(t *testing.T) {
	merge := func(change func(*v1.AddonCatalogue)) catalogue.Merged {
		object := authored("team", v1.CatalogueCustom, 0, "web: 1.0.0 1.1.0", "cache: 1.0.0")
		if change != nil {
			change(object)
		}
		return catalogue.Merge(sourcesOf(t, object), catalogue.Claims{})
	}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonCatalogue)
		want   []string
	}{
		{"nothing", nil, nil},
		{"another spelling of a version", func(made *v1.AddonCatalogue) { made.Spec.Addons[0].Versions[0].Version = "v1.0.0" },
			[]string{"web v1.0.0 (1.0.0) Changed constraints, deprecation, draft or spelling"}},
		{"a version is added", func(made *v1.AddonCatalogue) {
			made.Spec.Addons[0].Versions = append(made.Spec.Addons[0].Versions, v1.AddonVersion{Version: "v2.0.0"})
		}, []string{"web v2.0.0 (2.0.0) Added "}},
		{"a version is removed", func(made *v1.AddonCatalogue) { made.Spec.Addons[0].Versions = made.Spec.Addons[0].Versions[:1] },
			[]string{"web 1.1.0 (1.1.0) Removed "}},
		{"an add-on is removed", func(made *v1.AddonCatalogue) { made.Spec.Addons = made.Spec.Addons[:1] },
			[]string{"cache  () Removed no catalogue has it any more", "cache 1.0.0 (1.0.0) Removed "}},
		{"values", func(made *v1.AddonCatalogue) { made.Spec.Addons[1].Versions[0].ValuesTemplate = "a: 1" },
			[]string{"cache 1.0.0 (1.0.0) Changed what it installs"}},
		{"deprecation", func(made *v1.AddonCatalogue) { made.Spec.Addons[1].Versions[0].Deprecated = "old" },
			[]string{"cache 1.0.0 (1.0.0) Changed constraints, deprecation, draft or spelling"}},
		{"a description", func(made *v1.AddonCatalogue) { made.Spec.Addons[1].Description = "new" },
			[]string{"cache  () Changed name, description, slot or namespace"}},
		{"the type", func(made *v1.AddonCatalogue) { made.Spec.Type = v1.CatalogueCore },
			[]string{"cache  () Changed type Core instead of Custom", "web  () Changed type Core instead of Custom"}},
	} {
		var got []string
		for _, one := range catalogue.Differences(merge(nil), merge(test.change)) {
			got = append(got, fmt.Sprintf("%s %s (%s) %s %s", one.Addon, one.Named, one.Version, one.What, one.Why))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}
