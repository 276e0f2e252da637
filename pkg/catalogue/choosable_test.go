package catalogue_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/long"
)

// choosableVersions are the versions in random catalogues, and wantedVersions the values of addonRef.version.
var (
	choosableVersions = []string{
		"0.9.0", "1.0.0", "v1.1.0", "1.2.0-rc.1", "1.2.0", "1.10.0", "2.0.0-beta.2", "2.0.0", "2.1.0+build", "v3", "latest",
	}
	wantedVersions = []string{
		"", "*", "1.x", "~1.2", ">= 1.1", ">= 1.1.0-0, < 2", "< 2", "1.0 - 2.0", ">= 2.0.0-0", "<1 || >=3", ">= 9", ">= nine",
		"1.1.0", "v2.1", "1.2.0-rc.1", "latest", "1.1.1",
	}
)

// anyOf selects one of some texts at random.
func anyOf(random *rand.Rand, texts ...string) string { return texts[random.IntN(len(texts))] }

// anyEntry is an add-on with random versions, constraints, deprecations and, if it is core, versions to leave.
func anyEntry(t *testing.T, random *rand.Rand) *catalogue.Entry {
	t.Helper()
	addon := v1.Addon{Name: "prometheus"}
	var left []string
	for _, i := range random.Perm(len(choosableVersions))[:1+random.IntN(len(choosableVersions))] {
		version := v1.AddonVersion{Version: choosableVersions[i], Deprecated: anyOf(random, "", "", "", "old"), Draft: random.IntN(6) == 0}
		version.Constraints = &v1.Constraints{
			K8sVersion: v1.VersionRange(anyOf(random, "", "", "< 1.37", ">= 1.37", "~1.36", ">= 1.36, < 1.39", "the latest")),
			KKPVersion: v1.VersionRange(anyOf(random, "", "", "", ">= 2.31", "~2.30")),
		}
		addon.Versions = append(addon.Versions, version)
		if random.IntN(8) == 0 {
			left = append(left, version.Version)
		}
	}
	merged := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}}
	merged.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{addon}}
	if random.IntN(3) == 0 {
		merged.Spec.Type = v1.CatalogueCore
		merged.Annotations = map[string]string{v1.AnnotationLeftVersions: catalogue.Leave{"prometheus": left}.Of("prometheus")}
	}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func anyPlatform(random *rand.Rand) catalogue.Platform {
	platform := catalogue.Platform{
		KKPVersion: anyOf(random, "v2.30.1", "v2.31.0", catalogue.OutsideKKP, ""),
		K8sVersion: anyOf(random, "v1.36.3", "v1.37.0", "v1.38.0-rc.1", ""), AllowPrereleases: random.IntN(2) == 0,
	}
	if random.IntN(3) == 0 {
		platform.Next = []string{"v1.37.1", "v1.38.0"}[:1+random.IntN(2)]
	}
	return platform
}

// TestWhatSelectGivesIsChoosable: A set's revision is computed from Choosable: another chosen version would be
// installed without a revision. The test fails when Select returns a version that is not in Choosable, with nothing
// installed, and with each installed version, also one out of the range, deprecated or withdrawn.
func TestWhatSelectGivesIsChoosable(t *testing.T) {
	long.Heavy(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	given := map[string]int{}
	for number := range 2000 {
		entry, platform, wanted := anyEntry(t, random), anyPlatform(random), wantedVersions[number%len(wantedVersions)]
		options := catalogue.SelectOptions{AllowDowngrade: random.IntN(2) == 0, Core: random.IntN(2) == 0}
		choosable := versionsOf(entry.Choosable(wanted))
		for _, installed := range append([]string{"", "1.5.0"}, choosableVersions...) {
			if isDraftOf(entry, installed) || wanted == "" && isPreRelease(installed) {
				continue // it stays where it is installed, and Choosable is for clusters without an installation
			}
			selected, refusal := catalogue.Select(entry, wanted, installed, platform, options)
			if refusal != nil {
				continue
			}
			given[wanted]++
			if version := selected.Version.Version; !slices.Contains(choosable, version) {
				t.Fatalf("case %d: %q with %q installed gives %q, but only %q can be chosen", number, wanted, installed, version, choosable)
			}
		}
	}
	for _, wanted := range wantedVersions {
		if hasAny := given[wanted] > 0; hasAny == slices.Contains([]string{">= 9", ">= nine", "1.1.1"}, wanted) {
			t.Errorf("%q gave a version %d times", wanted, given[wanted])
		}
	}
}

func isDraftOf(entry *catalogue.Entry, version string) bool {
	found, _ := entry.Version(version)
	return found != nil && found.Draft
}

// TestNothingElseIsChoosable: Versions that can't be chosen must be in no revision: otherwise each new version would
// begin a roll-out. The test fails when Choosable has a version that Select does not return even if it is the only
// one, when one is missing, and when the newest is not first.
func TestNothingElseIsChoosable(t *testing.T) {
	t.Parallel()
	var all []offered
	for _, version := range choosableVersions {
		all = append(all, offered{version, "~1.36", "old"})
		if got := entryOf(t, v1.CatalogueCustom, offered{version, "", isDraft}).Choosable(">= 0"); len(got) > 0 {
			t.Errorf("draft %q can be chosen by a range", version)
		}
	}
	for _, wanted := range wantedVersions {
		var want []string
		for _, version := range choosableVersions {
			alone := entryOf(t, v1.CatalogueCustom, offered{version, "", ""})
			if _, refusal := catalogue.Select(alone, wanted, "", catalogue.Platform{}, catalogue.SelectOptions{}); refusal == nil {
				want = append(want, version)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return catalogue.Compare(b, a) })
		if diff := cmp.Diff(want, versionsOf(entryOf(t, v1.CatalogueCustom, all...).Choosable(wanted))); diff != "" {
			t.Errorf("of %q (-want +got):\n%s", wanted, diff)
		}
	}
}

func versionsOf(versions []*v1.AddonVersion) []string {
	var names []string
	for _, version := range versions {
		names = append(names, version.Version)
	}
	return names
}

func isPreRelease(version string) bool { return strings.Contains(version, "-") }

// TestWhatMovesByItself: Content that changes without the catalogue can't be staged: it would change on every cluster
// at once. The test fails when a branch, a range of tags or an image without tag counts as fixed, and when a tag, a
// commit or a digest does not.
func TestWhatMovesByItself(t *testing.T) {
	t.Parallel()
	git := func(ref *v1.GitRef) *v1.Source {
		return &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/addons.git", Ref: ref}}
	}
	image := func(reference string) *v1.Source { return &v1.Source{Docker: &v1.ImageSource{Image: reference}} }
	chart := func(version string) *v1.Source {
		return &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example.com", Chart: "podinfo", Version: version}}
	}
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for _, test := range []struct {
		why    string
		source *v1.Source
		moves  bool
	}{
		{"nothing is fetched", nil, false},
		{"a branch", git(&v1.GitRef{Branch: "main"}), true},
		{"a tag", git(&v1.GitRef{Tag: "v1.0.0"}), false},
		{"the newest tag in a range", git(&v1.GitRef{Semver: "1.x"}), true},
		{"a commit", git(&v1.GitRef{Commit: strings.Repeat("0f", 20)}), false},
		{"no reference: branch main", git(nil), true},
		{"a reference to nothing: branch main", git(&v1.GitRef{}), true},
		{"an image with a tag", image("registry.example.com/addons:v1"), false},
		{"an image without", image("registry.example.com/addons"), true},
		{"the colon of a port is no tag", image("registry.example.com:5000/addons"), true},
		{"a port and a tag", image("registry.example.com:5000/addons:v1"), false},
		{"an image with a digest", image("registry.example.com/addons" + digest), false},
		{"a port and a digest", image("registry.example.com:5000/addons" + digest), false},
		{"an image with both", image("registry.example.com/addons:v1" + digest), false},
		{"a chart", chart("6.7.1"), false},
		{"charts are named exactly: a range is none of them", chart("6.x"), false},
	} {
		if moves := catalogue.SourceMoves(&v1.AddonVersion{Version: "1.0.0", Source: test.source}); moves != test.moves {
			t.Errorf("%s: it moves by itself is %t, want %t", test.why, moves, test.moves)
		}
	}
}
