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
	offer := func(author string, kind v1.CatalogueType, versions ...string) Offering {
		spec := offering(map[v1.AddonName][]string{"web": versions})
		if versions == nil {
			spec = offering(nil)
		}
		spec.Type = kind
		return Offering{author, spec}
	}
	custom := func(author string, versions ...string) Offering {
		return offer(author, v1.CatalogueCustom, versions...)
	}
	core := func(versions ...string) Offering { return offer("core", v1.CatalogueCore, versions...) }
	before := custom("mine", "v1.0.0", "1.1.0")
	whole := []UsedVersion{{"web", ""}, {"web", "1.0.0"}, {"web", "1.1.0"}}
	for _, test := range []struct {
		why       string
		owners    []string
		before    Offering
		remaining []Offering
		want      []UsedVersion
	}{
		{"nothing goes", nil, before, []Offering{before}, nil},
		{"one version goes", nil, before, []Offering{custom("mine", "1.1.0")}, []UsedVersion{{"web", "1.0.0"}}},
		{"another spelling is the same version", nil, before, []Offering{custom("mine", "1", "v1.1")}, nil},
		{"another catalogue has it still", nil, before, []Offering{custom("mine"), custom("other", "1.0.0", "1.1.0")}, nil},
		{"the whole add-on goes", nil, before, []Offering{custom("mine")}, whole},
		{"the whole catalogue goes", nil, before, nil, whole},
		{"the other catalogue that has it is left out", []string{"mine"}, before,
			[]Offering{custom("mine", "1.1.0"), custom("other", "1.0.0")}, []UsedVersion{{"web", "1.0.0"}}},
		{"the other catalogue gets what its owner gives up", []string{"mine"}, before, []Offering{custom("other", "1.0.0")}, []UsedVersion{{"web", "1.1.0"}}},
		{"another owner has it", []string{"mine", "other"}, before, []Offering{custom("mine", "1.1.0"), custom("other", "1.0.0")}, nil},
		{"it goes from a catalogue that is left out", []string{"other"}, before, []Offering{custom("mine"), custom("other", "1.1.0")}, nil},
		{"a Core catalogue reserves the name", nil, before, []Offering{core("2.0.0")}, nil},
		{"a Core catalogue has others that are left out", nil, core("1.0.0", "1.1.0"), []Offering{core("1.1.0"), before}, []UsedVersion{{"web", "1.0.0"}}},
	} {
		t.Run(test.why, func(t *testing.T) {
			got := Withdrawn(Owners{"web": test.owners}, test.before, test.remaining...)
			if diff := cmp.Diff(test.want, got, cmp.Transformer("none", func(list []UsedVersion) []UsedVersion {
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
