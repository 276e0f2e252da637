package catalogue_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func entryNamed(t *testing.T, name string, kind v1.CatalogueType, versions ...offered) *catalogue.Entry {
	t.Helper()
	entry := entryOf(t, kind, versions...)
	entry.Addon.Name = v1.AddonName(name)
	return entry
}

// named is a version of the catalogue that entryOf names.
func named(version string) catalogue.VersionOrigin {
	return catalogue.VersionOrigin{Version: version, Catalogue: "custom"}
}

// list is the answer of the query endpoint, for entries in any order.
func list(entries []*catalogue.Entry, platform catalogue.Platform, options catalogue.ListOptions) catalogue.Listing {
	lister := catalogue.NewLister(platform, options)
	listing := catalogue.Listing{
		KKPVersion: catalogue.CanonicalPlatformVersion(platform.KKPVersion),
		K8sVersion: catalogue.CanonicalPlatformVersion(platform.K8sVersion), Addons: []catalogue.ListedAddon{},
	}
	for _, entry := range slices.SortedFunc(slices.Values(entries), func(a, b *catalogue.Entry) int {
		return strings.Compare(string(a.Addon.Name), string(b.Addon.Name))
	}) {
		if listed, ok := lister.List(entry); ok {
			listing.Addons = append(listing.Addons, listed)
		}
	}
	return listing
}

func TestList(t *testing.T) {
	t.Parallel()
	entries := []*catalogue.Entry{
		entryNamed(t, "web", "", offered{"1.0.0", "", "old"}, offered{"2.0.0", ">= 1.37", ""}, offered{"1.5.0", "< 1.37", ""}, offered{"3.0.0", "", isDraft}),
		entryNamed(t, "cni", v1.CatalogueCore, offered{"1.0.0", "", ""}),
		entryNamed(t, "new", "", offered{"9.0.0", ">= 1.99", ""}),
	}
	platform := catalogue.Platform{KKPVersion: "v2.31.0-3-g2974df5", K8sVersion: "v1.36.3+k3s1"}
	fits := []catalogue.ListedVersion{{VersionOrigin: named("1.5.0")}, {VersionOrigin: named("1.0.0"), Deprecated: "old"}}
	plain := catalogue.Listing{KKPVersion: "2.31.0", K8sVersion: "1.36.3", Addons: []catalogue.ListedAddon{{Name: "web", Versions: fits}}}
	if diff := cmp.Diff(plain, list(entries, platform, catalogue.ListOptions{})); diff != "" {
		t.Errorf("a listing (-want +got):\n%s", diff)
	}
	needs := func(version, k8s string) []catalogue.ListedExclusion {
		return []catalogue.ListedExclusion{{
			VersionOrigin: named(version), Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes " + k8s + "; it is 1.36.3",
		}}
	}
	draft := []catalogue.ListedExclusion{{
		VersionOrigin: named("3.0.0"), Reason: v1.ExcludedDraft, Message: "it is a draft: name it exactly to try it",
	}}
	core := []catalogue.ListedExclusion{{
		VersionOrigin: named("1.0.0"), Reason: v1.ExcludedCore, Message: "core add-ons are installed by the platform and not offered to users",
	}}
	explained := catalogue.Listing{KKPVersion: "2.31.0", K8sVersion: "1.36.3", Addons: []catalogue.ListedAddon{
		{Name: "cni", Versions: []catalogue.ListedVersion{}, Excluded: core},
		{Name: "new", Versions: []catalogue.ListedVersion{}, Excluded: needs("9.0.0", ">= 1.99")},
		{Name: "web", Versions: fits, Excluded: append(draft, needs("2.0.0", ">= 1.37")...)},
	}}
	if diff := cmp.Diff(explained, list(entries, platform, catalogue.ListOptions{Explain: true})); diff != "" {
		t.Errorf("an explained listing (-want +got):\n%s", diff)
	}
}

// TestListAgreesWithAvailable: both make the same decision, in different forms.
func TestListAgreesWithAvailable(t *testing.T) {
	t.Parallel()
	entries := []*catalogue.Entry{
		entryNamed(t, "web", "", offered{"1.0.0", "", ""}, offered{"2.0.0", ">= 1.37", ""}, offered{"3.0.0", "nonsense", ""}, offered{"4.0.0", "", isDraft}),
		entryNamed(t, "cni", v1.CatalogueCore, offered{"1.0.0", "", ""}),
	}
	for _, version := range []string{"", "1.36.0", "v1.37.0-rc.1", "v1.37.2-eks-113cf36", "latest"} {
		platform := catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: version}
		available, err := catalogue.Available(entries, platform)
		if err != nil {
			t.Fatal(err)
		}
		var have, want []string
		for _, addon := range list(entries, platform, catalogue.ListOptions{Explain: true}).Addons {
			for _, listed := range addon.Versions {
				have = append(have, addon.Name+" "+listed.Version)
			}
			for _, excluded := range addon.Excluded {
				have = append(have, "not "+addon.Name+" "+excluded.Version+": "+excluded.Reason+", "+excluded.Message)
			}
		}
		for _, addon := range available.Addons {
			for _, offered := range addon.Versions {
				want = append(want, string(addon.Name)+" "+offered.Version)
			}
		}
		for _, excluded := range available.Excluded {
			want = append(want, "not "+excluded.Addon+" "+excluded.Version+": "+excluded.Reason+", "+excluded.Message)
		}
		if diff := cmp.Diff(asSet(want), asSet(have)); diff != "" {
			t.Errorf("Kubernetes %q: (-Available +List)\n%s", version, diff)
		}
	}
}

// TestAvailableHasShortTexts fails when users don't see the purpose of an add-on, and when texts grow with the number
// of add-ons and versions.
func TestAvailableHasShortTexts(t *testing.T) {
	t.Parallel()
	var entries []*catalogue.Entry
	for i := range 1000 {
		addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("a%04d", i)), DisplayName: "An add-on", Description: strings.Repeat("many words ", 300)}
		addon.SupportedBy = "A team"
		for minor := range 5 {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", minor)})
		}
		entry, err := catalogue.NewEntry(&v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{addon}}})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	available, err := catalogue.Available(entries, catalogue.Platform{K8sVersion: "1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	texts, first := 0, available.Addons[0]
	for _, addon := range available.Addons {
		texts += len(addon.DisplayName) + len(addon.Description) + len(addon.SupportedBy)
	}
	if first.DisplayName != "An add-on" || len(first.Description) > 120 || !strings.HasSuffix(first.Description, "many …") {
		t.Errorf("the first has %q, %q", first.DisplayName, first.Description)
	}
	if texts > 32<<10 || texts < 30<<10 || available.Versions != 5000 {
		t.Errorf("%d bytes of texts, %d versions", texts, available.Versions)
	}
}

func asSet(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		set[line] = true
	}
	return set
}

func TestDetail(t *testing.T) {
	t.Parallel()
	form := []v1.FormField{{DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormInteger}}
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{
			v1.AnnotationVersions: `{"v1.0.0":{"digest":"sha256:1","catalogue":"custom"}}`,
		}},
		Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{{Name: "web", Description: "Pages.", Versions: []v1.AddonVersion{
			{Version: "v1.0.0", Template: &v1.Template{Method: v1.MethodHelm, FormSpec: form}}, {Version: "2.0.0"},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := entry.Detail("1.0.0")
	want := catalogue.VersionDetail{
		Addon: "web", Description: "Pages.", Type: v1.CatalogueCustom, VersionOrigin: named("v1.0.0"), Digest: "sha256:1",
		Method: v1.MethodHelm, FormSpec: form,
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("found %t (-want +got):\n%s", ok, diff)
	}
	if bare, ok := entry.Detail("2.0.0"); !ok || bare.FormSpec == nil {
		t.Errorf("a version without a form: found %t, form %v, want an empty one", ok, bare.FormSpec)
	}
	if _, ok := entry.Detail("3.0.0"); ok {
		t.Error("a version that is not there was found")
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"version":"v1.0.0"`, `"catalogue":"custom"`, `"digest":"sha256:1"`} {
		if !strings.Contains(string(encoded), field) {
			t.Errorf("the JSON %s has no %s", encoded, field)
		}
	}
}

func TestStampedKKPVersion(t *testing.T) {
	t.Parallel()
	stamped := func(versions ...string) (entries []*catalogue.Entry) {
		for _, version := range versions {
			entries = append(entries, &catalogue.Entry{KKPVersion: version})
		}
		return entries
	}
	for want, entries := range map[string][]*catalogue.Entry{
		"":        nil,
		"v2.31.0": stamped("v2.30.0", "v2.31.0", "v2.31.0"),
		"v2.32.0": stamped("v2.31.0", "v2.32.0"),
	} {
		if got := catalogue.StampedKKPVersion(entries); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
