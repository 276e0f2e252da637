package catalogue_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// offered is an add-on as the tests of selection write it.
type offered struct{ version, k8s, deprecated string }

// isDraft in place of a deprecation makes a draft.
const isDraft = "draft"

func entryOf(t *testing.T, kind v1.CatalogueType, versions ...offered) *catalogue.Entry {
	t.Helper()
	addon := v1.Addon{Name: "prometheus"}
	origins := map[string]catalogue.Origin{}
	for _, version := range versions {
		spec := v1.AddonVersion{Version: version.version, Deprecated: version.deprecated}
		if version.deprecated == isDraft {
			spec.Deprecated, spec.Draft = "", true
		}
		if version.k8s != "" {
			spec.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(version.k8s)}
		}
		addon.Versions = append(addon.Versions, spec)
		origins[version.version] = catalogue.Origin{Digest: "sha256:" + version.version, Catalogue: "custom"}
	}
	encoded, err := json.Marshal(origins)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Annotations: map[string]string{v1.AnnotationVersions: string(encoded)}},
		Spec:       v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{addon}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func TestSelect(t *testing.T) {
	t.Parallel()
	plain := []offered{{"1.0.0", "", ""}, {"v1.2.0", "", ""}, {"1.10.0", "", ""}, {"2.0.0", "", ""}, {"3.0.0-rc.1", "", ""}}
	bound := []offered{{"1.0.0", "", ""}, {"1.1.0", "< 1.36", ""}, {"1.2.0", ">= 1.36, < 1.37", ""}, {"2.0.0", ">= 1.37", ""}}
	drafted := []offered{{"1.0.0", "", ""}, {"1.1.0", "", isDraft}, {"2.0.0", ">= 1.99", isDraft}}
	aged := []offered{{"1.0.0", "", ""}, {"1.1.0", "", "has a hole"}, {"2.0.0", "", "has another"}}
	odd := []offered{{"latest", "", ""}, {"main", "", ""}}
	down := catalogue.SelectOptions{AllowDowngrade: true}
	for _, test := range []struct {
		why               string
		versions          []offered
		wanted, installed string
		options           catalogue.SelectOptions
		want, update      string
		refusal           string
	}{
		{why: "exact", versions: plain, wanted: "1.0.0", want: "1.0.0", update: "2.0.0"},
		{why: "exact in another spelling", versions: plain, wanted: "v1.0.0+x", want: "1.0.0", update: "2.0.0"},
		{why: "short form", versions: plain, wanted: "v2", want: "2.0.0"},
		{why: "exact pre-release", versions: plain, wanted: "3.0.0-rc.1", want: "3.0.0-rc.1"},
		{why: "exact unknown", versions: plain, wanted: "9.9.9", refusal: v1.ReasonVersionUnknown},
		{why: "absent is the highest release", versions: plain, want: "2.0.0"},
		{why: "numbers, not letters, are compared", versions: plain, wanted: "1.x", want: "1.10.0", update: "2.0.0"},
		{why: "a range with spaces", versions: plain, wanted: ">=1.0 <1.10", want: "v1.2.0", update: "2.0.0"},
		{why: "a range that names a pre-release", versions: plain, wanted: ">=3.0.0-0", want: "3.0.0-rc.1"},
		{why: "an empty range", versions: plain, wanted: ">=9", refusal: v1.ReasonVersionUnknown},
		{why: "no range", versions: plain, wanted: ">=nine", refusal: v1.ReasonVersionUnknown},
		{why: "only what fits", versions: bound, want: "1.2.0"},
		{why: "only what fits in the range", versions: bound, wanted: "~1.0", want: "1.0.0", update: "1.2.0"},
		{why: "nothing in the range fits", versions: bound, wanted: ">=2", refusal: v1.ExcludedK8sVersion},
		{why: "exact that does not fit", versions: bound, wanted: "1.1.0", refusal: v1.ExcludedK8sVersion},
		{why: "pinned stays refused", versions: bound, wanted: "1.1.0", installed: "1.1.0",
			refusal: v1.ExcludedK8sVersion, update: "1.2.0"},
		{why: "the range moves up past what fits no more", versions: bound, wanted: ">=1", installed: "1.1.0", want: "1.2.0"},
		{why: "what is installed fits no more, and only lower ones do", versions: bound, wanted: ">=1", installed: "2.0.0",
			refusal: v1.ExcludedK8sVersion},
		{why: "deprecated is not chosen by range", versions: aged, want: "1.0.0"},
		{why: "deprecated is chosen exactly", versions: aged, wanted: "1.1.0", want: "1.1.0"},
		{why: "deprecated stays installed", versions: aged, installed: "1.1.0", want: "1.1.0"},
		{why: "a draft is not chosen by range", versions: drafted, want: "1.0.0"},
		{why: "a draft is no update", versions: drafted, wanted: "1.0.0", want: "1.0.0"},
		{why: "a draft is chosen exactly", versions: drafted, wanted: "1.1.0", want: "1.1.0"},
		{why: "a draft stays installed", versions: drafted, installed: "1.1.0", want: "1.1.0"},
		{why: "a draft that does not fit", versions: drafted, wanted: "2.0.0", refusal: v1.ExcludedK8sVersion},
		{why: "only drafts, one of which does not fit", versions: drafted, wanted: ">=1.1", refusal: v1.ReasonVersionUnknown},
		{why: "all deprecated", versions: aged, wanted: ">=1.1", refusal: v1.ReasonVersionUnknown},
		{why: "never down by itself", versions: plain, wanted: "", installed: "2.5.0", refusal: v1.ReasonWithdrawn},
		{why: "a new range that is lower", versions: plain, wanted: "1.x", installed: "2.0.0",
			refusal: v1.ReasonDowngradeRefused},
		{why: "a new range that is lower, allowed", versions: plain, wanted: "1.x", installed: "2.0.0", options: down,
			want: "1.10.0", update: "2.0.0"},
		{why: "lower exact version", versions: plain, wanted: "1.0.0", installed: "2.0.0",
			refusal: v1.ReasonDowngradeRefused},
		{why: "lower exact version, allowed", versions: plain, wanted: "1.0.0", installed: "2.0.0", options: down,
			want: "1.0.0", update: "2.0.0"},
		{why: "the same version spelled otherwise is no downgrade", versions: plain, wanted: "1.2.0", installed: "v1.2.0",
			want: "v1.2.0", update: "2.0.0"},
		{why: "withdrawn pin", versions: plain, wanted: "1.5.0", installed: "1.5.0", refusal: v1.ReasonWithdrawn,
			update: "2.0.0"},
		{why: "withdrawn in a range goes up", versions: plain, wanted: ">=1", installed: "1.5.0", want: "2.0.0"},
		{why: "pre-release stays", versions: plain, installed: "3.0.0-rc.1", want: "3.0.0-rc.1"},
		{why: "no semver, exactly", versions: odd, wanted: "main", want: "main"},
		{why: "no semver is never chosen by itself", versions: odd, refusal: v1.ReasonVersionUnknown},
		{why: "no semver does not hold a range back", versions: plain, wanted: "1.x", installed: "main", want: "1.10.0",
			update: "2.0.0"},
	} {
		entry := entryOf(t, v1.CatalogueCustom, test.versions...)
		got, err := catalogue.Select(entry, test.wanted, test.installed, catalogue.Platform{K8sVersion: "v1.36.3"}, test.options)
		var refusal catalogue.Refusal
		switch {
		case test.refusal != "" && !errors.As(err, &refusal):
			t.Errorf("%s: chose %v, want refusal %s", test.why, got.Version, test.refusal)
		case test.refusal != "" && refusal.Reason() != test.refusal:
			t.Errorf("%s: refused for %s (%v), want %s", test.why, refusal.Reason(), err, test.refusal)
		case test.refusal == "" && err != nil:
			t.Errorf("%s: %v", test.why, err)
		case test.refusal == "" && (got.Version.Version != test.want || got.Origin.Digest != "sha256:"+test.want):
			t.Errorf("%s: chose %q of %v, want %q", test.why, got.Version.Version, got.Origin, test.want)
		}
		if got.AvailableUpdate != test.update {
			t.Errorf("%s: update %q, want %q", test.why, got.AvailableUpdate, test.update)
		}
	}
}

func TestSelectNamesTheFittingVersion(t *testing.T) {
	t.Parallel()
	entry := entryOf(t, v1.CatalogueCustom, offered{"1.0.0", "< 1.36", ""}, offered{"2.0.0", ">= 1.36", ""})
	_, err := catalogue.Select(entry, "1.0.0", "1.0.0", catalogue.Platform{K8sVersion: "v1.36.3"}, catalogue.SelectOptions{})
	want := &catalogue.IncompatibleError{
		Addon: "prometheus", Version: "1.0.0", Excluded: v1.ExcludedK8sVersion,
		Message: "needs Kubernetes < 1.36; it is 1.36.3", Fitting: "2.0.0",
	}
	var got *catalogue.IncompatibleError
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want %v", err, want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSelectReportsHowToHaveAPreRelease fails when an add-on that has only pre-releases is refused without the way to
// select one.
func TestSelectReportsHowToHaveAPreRelease(t *testing.T) {
	t.Parallel()
	beta := entryOf(t, v1.CatalogueCustom, offered{"3.24.0-beta.0", "", ""})
	for wanted, want := range map[string]string{
		"":      `has no version to choose: it has 3.24.0-beta.0; name a pre-release exactly to install it`,
		"3.x":   `has no version "3.x": it has 3.24.0-beta.0; name a pre-release exactly to install it`,
		"3.0.0": `has no version "3.0.0": it has 3.24.0-beta.0`,
	} {
		_, err := catalogue.Select(beta, wanted, "", catalogue.Platform{K8sVersion: "v1.36.3"}, catalogue.SelectOptions{})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", wanted, err, want)
		}
	}
}

// TestSelectReportsTheWayDown fails when the version that would fit is named without the way to it: downgrades are
// never automatic.
func TestSelectReportsTheWayDown(t *testing.T) {
	t.Parallel()
	bound := entryOf(t, v1.CatalogueCustom, offered{"1.0.0", "", ""}, offered{"2.0.0", ">= 1.37", ""})
	const (
		way       = `version "1.0.0" would fit, but it is lower: set annotation addons.kubermatic.k8c.io/allow-downgrade to "true" to permit it`
		wayOfSets = `add "Downgrade" to field allow of the set's item to permit it`
	)
	for _, test := range []struct {
		why, wanted, installed string
		options                catalogue.SelectOptions
		want                   string
	}{
		{"what is installed fits no more", "2.x", "2.0.0", catalogue.SelectOptions{}, way},
		{"what is installed was withdrawn", "", "1.5.0", catalogue.SelectOptions{}, way},
		{"a set asks", "2.x", "2.0.0", catalogue.SelectOptions{BySet: true}, `but it is lower: ` + wayOfSets},
		{"a set asks for a lower one", "1.0.0", "2.0.0", catalogue.SelectOptions{BySet: true}, `is lower than the installed "2.0.0": ` + wayOfSets},
		{"nothing is installed", "2.0.0", "", catalogue.SelectOptions{}, `version "1.0.0" would fit`},
		{"it is allowed, and not asked for", "2.x", "2.0.0", catalogue.SelectOptions{AllowDowngrade: true}, `version "1.0.0" would fit`},
	} {
		_, err := catalogue.Select(bound, test.wanted, test.installed, catalogue.Platform{K8sVersion: "v1.36.3"}, test.options)
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want it to end with %s", test.why, err, test.want)
		}
	}
}

func TestSelectKeepsCoreFromUsers(t *testing.T) {
	t.Parallel()
	entry := entryOf(t, v1.CatalogueCore, offered{"1.0.0", "", ""})
	_, err := catalogue.Select(entry, "1.0.0", "", catalogue.Platform{}, catalogue.SelectOptions{})
	var refusal catalogue.Refusal
	if !errors.As(err, &refusal) || refusal.Reason() != v1.ExcludedCore {
		t.Errorf("a user's installation got %v, want refusal Core", err)
	}
	got, err := catalogue.Select(entry, "", "", catalogue.Platform{}, catalogue.SelectOptions{Core: true})
	if err != nil || got.Version.Version != "1.0.0" {
		t.Errorf("a core installation got %v, %v", got.Version, err)
	}
}

func TestIsRange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"v1": false, "1.2.0": false, "1.2.0-rc.1": false, "latest": false, "linux": false, "1.2.0+x": false, "v1.0-x": false,
		"1.x": true, "X": true, "v1.2.x": true, "*": true, ">=1": true, "~1": true, "^1": true, "1 - 2": true, "1||2": true,
		"1,2": true, "=1.0.0": true, "<2": true,
	} {
		if got := catalogue.IsRange(text); got != want {
			t.Errorf("IsRange(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{{"v1.2.0", "1.2.0"}, {"1.2.0+a", "1.2.0+b"}, {"v1", "1.0.0"}, {"01.0.0", "1.0.0"}} {
		if catalogue.Key(same[0]) != catalogue.Key(same[1]) {
			t.Errorf("%q and %q are the same version", same[0], same[1])
		}
	}
	for _, other := range [][2]string{{"1.2.0", "1.2.1"}, {"1.2.0-rc.1", "1.2.0"}, {"latest", "Latest"}, {"1.2.3.4", "1.2.3"}} {
		if catalogue.Key(other[0]) == catalogue.Key(other[1]) {
			t.Errorf("%q and %q are different versions", other[0], other[1])
		}
	}
}

// TestContentIsWhatAVersionInstalls fails when a deprecation, other constraints or another onClusterDeletion count as
// other content, or other content does not.
func TestContentIsWhatAVersionInstalls(t *testing.T) {
	contentOf := func(change func(*v1.AddonVersion)) string {
		version := v1.AddonVersion{
			Version: "1.0.0", Template: &v1.Template{Method: v1.MethodHelm}, Values: &runtime.RawExtension{Raw: []byte(`{"a":1}`)},
		}
		change(&version)
		entry, err := catalogue.NewEntry(&v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{
			Addons: []v1.Addon{{Name: "a", Versions: []v1.AddonVersion{version}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, origin := entry.Version("1.0.0")
		return origin.Content
	}
	base := contentOf(func(*v1.AddonVersion) {})
	for why, test := range map[string]struct {
		change func(*v1.AddonVersion)
		same   bool
	}{
		"draft":              {func(v *v1.AddonVersion) { v.Draft = true }, true},
		"deprecated":         {func(v *v1.AddonVersion) { v.Deprecated = "old" }, true},
		"constraints":        {func(v *v1.AddonVersion) { v.Constraints = &v1.Constraints{K8sVersion: "~1.37"} }, true},
		"values, spelt anew": {func(v *v1.AddonVersion) { v.Values.Raw = []byte(`{ "a" : 1 }`) }, true},
		"values":             {func(v *v1.AddonVersion) { v.Values.Raw = []byte(`{"a":2}`) }, false},
		"its end":            {func(v *v1.AddonVersion) { v.Template.OnClusterDeletion = v1.ClusterDeletionRemove }, true},
		"template":           {func(v *v1.AddonVersion) { v.Template.Atomic = true }, false},
		"source":             {func(v *v1.AddonVersion) { v.Source = &v1.Source{Git: &v1.GitSource{Remote: "https://example.com/x"}} }, false},
	} {
		if same := contentOf(test.change) == base && base != ""; same != test.same {
			t.Errorf("%s: the same content is %t, want %t", why, same, test.same)
		}
	}
}
