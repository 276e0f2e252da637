package catalogue

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func offering(addons map[v1.AddonName][]string) *v1.AddonCatalogueSpec {
	spec := &v1.AddonCatalogueSpec{}
	for name, versions := range addons {
		addon := v1.Addon{Name: name}
		for _, version := range versions {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: version})
		}
		spec.Addons = append(spec.Addons, addon)
	}
	return spec
}

func TestWithdrawn(t *testing.T) {
	before := offering(map[v1.AddonName][]string{"web": {"v1.0.0", "1.1.0"}})
	for _, test := range []struct {
		why       string
		remaining []*v1.AddonCatalogueSpec
		want      []UsedVersion
	}{
		{"nothing goes", []*v1.AddonCatalogueSpec{before}, nil},
		{"one version goes", []*v1.AddonCatalogueSpec{offering(map[v1.AddonName][]string{"web": {"1.1.0"}})},
			[]UsedVersion{{"web", "1.0.0"}}},
		{"another spelling is the same version", []*v1.AddonCatalogueSpec{offering(map[v1.AddonName][]string{"web": {"1", "v1.1"}})}, nil},
		{"another catalogue has it still", []*v1.AddonCatalogueSpec{
			offering(nil), offering(map[v1.AddonName][]string{"web": {"1.0.0", "1.1.0"}}),
		}, nil},
		{"the whole add-on goes", []*v1.AddonCatalogueSpec{offering(nil)},
			[]UsedVersion{{"web", ""}, {"web", "1.0.0"}, {"web", "1.1.0"}}},
		{"the whole catalogue goes", nil, []UsedVersion{{"web", ""}, {"web", "1.0.0"}, {"web", "1.1.0"}}},
	} {
		t.Run(test.why, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Withdrawn(before, test.remaining...), cmp.Transformer("none", func(list []UsedVersion) []UsedVersion {
				return append([]UsedVersion{}, list...)
			})); diff != "" {
				t.Errorf("withdrawn (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageIsReadAsItWasWritten(t *testing.T) {
	usage := SeedUsage{
		Seed: "north", LastSeen: time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC),
		Installations: map[UsedVersion]int{{"web", "1.0.0"}: 3, {"web", ""}: 1, {"dns", "nightly"}: 2},
	}
	read, err := DecodeUsage("north", usage.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(usage, read); diff != "" {
		t.Errorf("read (-written +read):\n%s", diff)
	}
	if got := usage.Of([]UsedVersion{{"web", "1.0.0"}, {"dns", "nightly"}, {"gone", "1"}}); got != 5 {
		t.Errorf("installations in question: %d, want 5", got)
	}
	if _, err := DecodeUsage("north", "{"); err == nil {
		t.Error("half a record is read")
	}
}
