package catalogue_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// authored is a catalogue as the tests of merging write it: "name: version version".
func authored(name string, kind v1.CatalogueType, priority int32, addons ...string) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
		},
		Spec: v1.AddonCatalogueSpec{Type: kind, Priority: priority},
	}
	for _, line := range addons {
		addonName, versions, _ := strings.Cut(line, ": ")
		addon := v1.Addon{Name: v1.AddonName(addonName), Description: addonName + " of " + name}
		for version := range strings.FieldsSeq(versions) {
			addon.Versions = append(addon.Versions, v1.AddonVersion{Version: version, ValuesTemplate: "from: " + name})
		}
		object.Spec.Addons = append(object.Spec.Addons, addon)
	}
	return object
}

func sourcesOf(t testing.TB, objects ...*v1.AddonCatalogue) []*catalogue.Source {
	t.Helper()
	var sources []*catalogue.Source
	for _, object := range objects {
		source, err := catalogue.Read(object)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
	}
	return sources
}

// asBefore merges without any recorded owner, as at an upgrade: all that win a version become owners.
func asBefore(sources []*catalogue.Source) catalogue.Merged {
	return catalogue.Merge(sources, catalogue.Claims{Adopt: true})
}

// story describes a merge in lines: the merged versions with origins, then the refused add-ons and the conflicts of
// each catalogue.
func story(merged catalogue.Merged) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(merged.Addons)) {
		addon := merged.Addons[name].Spec.Addons[0]
		var versions []string
		for _, version := range addon.Versions {
			versions = append(versions, version.Version+" from "+merged.Addons[name].Origins[version.Version].Catalogue)
		}
		lines = append(lines, fmt.Sprintf("%s (%s, %s): %s",
			name, merged.Addons[name].Spec.Type, addon.Description, strings.Join(versions, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(merged.Refused)) {
		lines = append(lines, "refused: "+merged.Refused[name].Error())
	}
	for _, uid := range slices.Sorted(maps.Keys(merged.Conflicts)) {
		for _, conflict := range merged.Conflicts[uid] {
			lines = append(lines, fmt.Sprintf("on %s: %s %s won by %s, %s",
				strings.TrimPrefix(string(uid), "uid-"), conflict.Addon, conflict.Version, conflict.WonBy, conflict.Reason))
		}
	}
	return lines
}

func TestMerge(t *testing.T) {
	t.Parallel()
	const custom, core = v1.CatalogueCustom, v1.CatalogueCore
	older := authored("older", custom, 0, "loki: 1.0.0")
	older.CreationTimestamp = metav1.NewTime(time.Unix(10, 0))
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("1.%d.0", i))
	}
	for _, test := range []struct {
		why     string
		objects []*v1.AddonCatalogue
		want    []string
	}{
		{"nothing", nil, nil},
		{"versions are united, newest first, odd names last",
			[]*v1.AddonCatalogue{authored("a", custom, 0, "loki: 1.2.0 latest 1.10.0"), authored("b", custom, 0, "loki: v2.0.0", "tempo: 1.0.0")},
			[]string{
				"loki (Custom, loki of b): v2.0.0 from b, 1.10.0 from a, 1.2.0 from a, latest from a",
				"tempo (Custom, tempo of b): 1.0.0 from b",
			}},
		{"priority wins a duplicate in another spelling",
			[]*v1.AddonCatalogue{authored("a", custom, 0, "loki: v1.0.0 0.9.0"), authored("b", custom, 5, "loki: 1.0.0+build")},
			[]string{
				"loki (Custom, loki of b): 1.0.0+build from b, 0.9.0 from a",
				"on a: loki v1.0.0 won by b, Duplicate", "on b: loki 1.0.0+build won by b, Duplicate",
			}},
		{"the older one wins at equal priority",
			[]*v1.AddonCatalogue{authored("a", custom, 0, "loki: 1.0.0 0.9.0"), older},
			[]string{
				"loki (Custom, loki of older): 1.0.0 from older, 0.9.0 from a",
				"on a: loki 1.0.0 won by older, Duplicate", "on older: loki 1.0.0 won by older, Duplicate",
			}},
		{"the name decides at last, and three report it",
			[]*v1.AddonCatalogue{
				authored("c", custom, 0, "loki: 1.0.0 0.8.0"), authored("a", custom, 0, "loki: 1.0.0"), authored("b", custom, 0, "loki: 1.0.0 0.9.0"),
			},
			[]string{
				"loki (Custom, loki of a): 1.0.0 from a, 0.9.0 from b, 0.8.0 from c",
				"on a: loki 1.0.0 won by a, Duplicate", "on b: loki 1.0.0 won by a, Duplicate", "on c: loki 1.0.0 won by a, Duplicate",
			}},
		{"core reserves names against any priority",
			[]*v1.AddonCatalogue{authored("a", custom, 1000, "canal: 9.0.0", "loki: 1.0.0"), authored("b", core, 0, "canal: 1.0.0")},
			[]string{
				"canal (Core, canal of b): 1.0.0 from b", "loki (Custom, loki of a): 1.0.0 from a",
				"on a: canal  won by b, CoreReserved",
			}},
		{"two core catalogues are united",
			[]*v1.AddonCatalogue{authored("a", core, 0, "canal: 1.0.0"), authored("b", core, 1, "canal: 1.0.0 1.1.0")},
			[]string{
				"canal (Core, canal of b): 1.1.0 from b, 1.0.0 from b",
				"on a: canal 1.0.0 won by b, Duplicate", "on b: canal 1.0.0 won by b, Duplicate",
			}},
		{"too many versions",
			[]*v1.AddonCatalogue{
				authored("a", custom, 0, "loki: "+strings.Join(many, " ")),
				authored("b", custom, 0, "loki: 2"+strings.Join(many, " 2"), "tempo: 1.0.0"),
			},
			[]string{
				"tempo (Custom, tempo of b): 1.0.0 from b",
				`refused: merged add-on "loki" has 200 versions, more than 128: remove old versions from its catalogues`,
			}},
	} {
		got := story(asBefore(sourcesOf(t, test.objects...)))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
	}
}

func TestMergeRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	object := authored("a", v1.CatalogueCustom, 0, "big: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "small: 1")
	for i := range object.Spec.Addons[0].Versions {
		object.Spec.Addons[0].Versions[i].ValuesTemplate = strings.Repeat("x", 64<<10)
	}
	merged := asBefore(sourcesOf(t, object))
	refused := merged.Refused["big"]
	if refused == nil || refused.What != "bytes" || refused.Have <= refused.Limit || refused.Limit != catalogue.MergedLimit {
		t.Fatalf("refused %+v", refused)
	}
	if merged.Addons["small"] == nil || merged.Addons["big"] != nil {
		t.Errorf("merged %v", story(merged))
	}
}

// TestMergeDoesNotDependOnOrder: The merge is the same for any order of the catalogues, including its digest.
func TestMergeDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		objects := randomCatalogues(random)
		sources := sourcesOf(t, objects...)
		want := asBefore(sources)
		for range 5 {
			random.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
			got := asBefore(sources)
			if diff := cmp.Diff(story(want), story(got)); diff != "" {
				t.Fatalf("another order, another merge: %s", diff)
			}
			for name, addon := range want.Addons {
				if got.Addons[name].Digest != addon.Digest {
					t.Fatalf("another order, another digest of %q", name)
				}
			}
		}
		checkMerge(t, objects, want)
	}
}

// checkMerge checks properties that every merge has.
func checkMerge(t *testing.T, objects []*v1.AddonCatalogue, merged catalogue.Merged) {
	t.Helper()
	reserved, keys := map[v1.AddonName]bool{}, map[string]bool{}
	for _, object := range objects {
		for _, addon := range object.Spec.Addons {
			reserved[addon.Name] = reserved[addon.Name] || object.Spec.Type == v1.CatalogueCore
		}
	}
	for name, addon := range merged.Addons {
		if want := reserved[v1.AddonName(name)]; want != (addon.Spec.Type == v1.CatalogueCore) {
			t.Fatalf("add-on %q: reserved %v, type %s", name, want, addon.Spec.Type)
		}
		for _, version := range addon.Spec.Addons[0].Versions {
			key := name + " " + catalogue.Key(version.Version)
			if keys[key] {
				t.Fatalf("add-on %q has version %q twice", name, version.Version)
			}
			keys[key] = true
		}
	}
	for _, object := range objects {
		for _, addon := range object.Spec.Addons {
			for _, version := range addon.Versions {
				left := reserved[addon.Name] && object.Spec.Type != v1.CatalogueCore
				if key := string(addon.Name) + " " + catalogue.Key(version.Version); !left && !keys[key] {
					t.Fatalf("version %q of %q is lost", version.Version, addon.Name)
				}
			}
		}
	}
}

func randomCatalogues(random *rand.Rand) []*v1.AddonCatalogue {
	var objects []*v1.AddonCatalogue
	for i := range 1 + random.IntN(6) {
		kind := v1.CatalogueCustom
		if random.IntN(4) == 0 {
			kind = v1.CatalogueCore
		}
		var addons []string
		for _, name := range []string{"loki", "tempo", "canal"} {
			versions := map[string]string{}
			for range random.IntN(5) {
				version := []string{"1.0.0", "v1.0.0", "1.0.0+x", "v1", "1.1.0", "2.0.0-rc.1", "latest", "2", "main"}[random.IntN(9)]
				versions[catalogue.Key(version)] = version
			}
			if len(versions) > 0 {
				addons = append(addons, name+": "+strings.Join(slices.Sorted(maps.Values(versions)), " "))
			}
		}
		object := authored(fmt.Sprintf("catalogue-%d", i), kind, random.Int32N(3), addons...)
		object.CreationTimestamp = metav1.NewTime(time.Unix(random.Int64N(3), 0))
		objects = append(objects, object)
	}
	return objects
}

func TestValidateNamesPlaceAndMend(t *testing.T) {
	t.Parallel()
	const place = `addon "loki" version "1.0.0": `
	whole := func(change func(*v1.AddonVersion)) *v1.AddonCatalogueSpec {
		spec := &authored("a", v1.CatalogueCustom, 0, "loki: 1.0.0").Spec
		version := &spec.Addons[0].Versions[0]
		version.Template = &v1.Template{Method: v1.MethodHelm}
		version.Source = &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example.com", Chart: "loki", Version: "1"}}
		change(version)
		return spec
	}
	for _, test := range []struct {
		why  string
		spec *v1.AddonCatalogueSpec
		want []string
	}{
		{"good", whole(func(*v1.AddonVersion) {}), nil},
		{"one version in two spellings", &authored("a", "", 0, "loki: 1.0.0 v1.0.0").Spec,
			[]string{`addon "loki" version "v1.0.0": version: "1.0.0" is the same version: remove one of them`}},
		{"build metadata does not tell versions apart", &authored("a", "", 0, "loki: 1.0.0+a 1.0.0+b").Spec,
			[]string{`addon "loki" version "1.0.0+b": version: "1.0.0+a" is the same version: remove one of them`}},
		{"an add-on twice", &authored("a", "", 0, "loki: 1", "loki: 2").Spec,
			[]string{`addon "loki": name: the add-on is listed twice: put all its versions into one entry`}},
		{"a range as a version", &authored("a", "", 0, "loki: 1.x").Spec,
			[]string{`addon "loki" version "1.x": version: it reads as a range, so no user could choose it: give it a name without an x part`}},
		{"no versions", &authored("a", "", 0, "loki: ").Spec, []string{`addon "loki": versions: there are none: list at least one`}},
		{"a bad name", &authored("a", "", 0, "Loki: 1").Spec,
			[]string{`addon "Loki": name: it is not a DNS label: use up to 63 lower-case letters, digits and dashes`}},
		{"a bad range", whole(func(v *v1.AddonVersion) { v.Constraints = &v1.Constraints{K8sVersion: ">= one"} }),
			[]string{place + `constraints.k8sVersion: range ">= one" can't be parsed: write it like ">= 1.34, < 1.38" or "1.x"`}},
		{"two sources", whole(func(v *v1.AddonVersion) { v.Source.Git = &v1.GitSource{} }),
			[]string{`addon "loki" version "1.0.0": source: set exactly one of git, docker and helm`}},
		{"an image without tag or digest", whole(func(v *v1.AddonVersion) {
			v.Source = &v1.Source{Docker: &v1.ImageSource{Image: "registry.example.com:5000/loki"}}
		}), []string{place + `source.docker.image: it has neither tag nor digest: write host/name:tag or host/name@sha256:…`}},
		{"an image with an empty tag", whole(func(v *v1.AddonVersion) {
			v.Source = &v1.Source{Docker: &v1.ImageSource{Image: "loki:"}}
		}), []string{place + `source.docker.image: it has neither tag nor digest: write host/name:tag or host/name@sha256:…`}},
		{"an image with a tag", whole(func(v *v1.AddonVersion) {
			v.Source = &v1.Source{Docker: &v1.ImageSource{Image: "registry.example.com:5000/loki:v1"}}
		}), nil},
		{"an image with a digest", whole(func(v *v1.AddonVersion) {
			v.Source = &v1.Source{Docker: &v1.ImageSource{Image: "loki@sha256:" + strings.Repeat("a", 64)}}
		}), nil},
		{"no template", whole(func(v *v1.AddonVersion) { v.Template = nil }),
			[]string{place + `source: set both template and source, next to each other: source is not a field of template`}},
		{"a chart as go-template", whole(func(v *v1.AddonVersion) { v.Template.Method = v1.MethodGoTemplate }),
			[]string{`addon "loki" version "1.0.0": source.helm: a chart from a repository needs template.method helm`}},
		{"secrets of the cluster for a Custom catalogue", whole(func(v *v1.AddonVersion) { v.Template.ClusterSecrets = true }),
			[]string{`addon "loki" version "1.0.0": template.clusterSecrets: only Core catalogues may set it: remove it`}},
		{"values that are no JSON", whole(func(v *v1.AddonVersion) { v.Values = &runtime.RawExtension{Raw: []byte("{")} }),
			[]string{`addon "loki" version "1.0.0": values: values and form defaults must be JSON`}},
	} {
		_, err := catalogue.Read(&v1.AddonCatalogue{Spec: *test.spec})
		var got []string
		if invalid, ok := errors.AsType[*catalogue.InvalidError](err); ok {
			for _, problem := range invalid.Problems {
				got = append(got, problem.String())
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
		if (err != nil) != (len(test.want) > 0) {
			t.Errorf("%s: Read says %v", test.why, err)
		}
	}
}

func TestDigestIsCanonical(t *testing.T) {
	t.Parallel()
	version := func(values string) *v1.AddonVersion {
		return &v1.AddonVersion{Version: "1.0.0", Values: &runtime.RawExtension{Raw: []byte(values)}}
	}
	digests := map[string]string{}
	for _, values := range []string{
		`{"a":1,"b":{"c":2,"d":3}}`, ` { "b" : {"d":3,"c":2}, "a":1 } `, `{"a":1,"b":{"c":2,"d":4}}`,
		`{"a":12345678901234567890}`, `{"a":12345678901234567891}`,
	} {
		digest, err := catalogue.VersionDigest(version(values))
		if err != nil {
			t.Fatal(err)
		}
		digests[values] = digest
	}
	if digests[`{"a":1,"b":{"c":2,"d":3}}`] != digests[` { "b" : {"d":3,"c":2}, "a":1 } `] {
		t.Error("the order of keys changes the digest")
	}
	if len(slices.Compact(slices.Sorted(maps.Values(digests)))) != 4 {
		t.Errorf("digests %v", digests)
	}
}

func FuzzNewEntry(f *testing.F) {
	f.Add([]byte(`{"1.0.0":{"digest":"sha256:0","catalogue":"a"}}`), "1.0.0", ">= 1.34")
	f.Add([]byte(`[]`), "latest", "")
	f.Fuzz(func(t *testing.T, annotation []byte, version, constraint string) {
		object := authored("a", v1.CatalogueCustom, 0, "loki: 1.0.0")
		object.Annotations = map[string]string{v1.AnnotationVersions: string(annotation)}
		object.Spec.Addons[0].Versions[0].Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(constraint)}
		entry, err := catalogue.NewEntry(object)
		if err != nil {
			return
		}
		selection, err := catalogue.Select(entry, version, "", catalogue.Platform{K8sVersion: "1.36.3"}, catalogue.SelectOptions{})
		if (err == nil) != (selection.Version != nil) {
			t.Errorf("chose %v and said %v", selection.Version, err)
		}
	})
}

func TestAvailableIsCompactAndCounted(t *testing.T) {
	t.Parallel()
	var entries []*catalogue.Entry
	for i := range 40 {
		object := authored("a", v1.CatalogueCustom, 0, fmt.Sprintf("addon-%02d: 1.0.0 1.1.0 1.2.0 1.3.0 1.4.0 1.5.0 1.6.0 2.0.0", i))
		for j := range 7 {
			object.Spec.Addons[0].Versions[j].Constraints = &v1.Constraints{K8sVersion: ">= 9"}
		}
		entry, err := catalogue.NewEntry(object)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	got, err := catalogue.Available(entries, catalogue.Platform{K8sVersion: "1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Addons) != 40 || got.Versions != 40 || got.ExcludedCount != 280 || len(got.Excluded) != 200 {
		t.Errorf("%d add-ons, %d versions, %d of %d excluded", len(got.Addons), got.Versions, len(got.Excluded), got.ExcludedCount)
	}
	slices.Reverse(entries)
	again, err := catalogue.Available(entries, catalogue.Platform{K8sVersion: "v1.36.3"})
	if err != nil || again.Digest != got.Digest {
		t.Errorf("another order, another digest (%v)", err)
	}
	other, err := catalogue.Available(entries, catalogue.Platform{K8sVersion: "v9.0.0"})
	if err != nil || other.Digest == got.Digest || other.Versions != 320 {
		t.Errorf("another platform: %d versions (%v)", other.Versions, err)
	}
}

// large is the catalogue of the benchmarks: 200 add-ons with 25 versions each, in 8 catalogues.
func large() []*v1.AddonCatalogue {
	var objects []*v1.AddonCatalogue
	for c := range 8 {
		object := authored(fmt.Sprintf("catalogue-%d", c), v1.CatalogueCustom, 0)
		for a := range 25 {
			addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("addon-%d-%d", c, a))}
			for v := range 25 {
				addon.Versions = append(addon.Versions, v1.AddonVersion{
					Version:     fmt.Sprintf("1.%d.%d", v, a),
					Constraints: &v1.Constraints{KKPVersion: ">= 2.28", K8sVersion: v1.VersionRange(fmt.Sprintf(">= 1.%d", 30+v%12))},
					Values:      &runtime.RawExtension{Raw: bytes.Clone([]byte(`{"replicas":3,"image":{"tag":"v1","repository":"r"}}`))},
				})
			}
			object.Spec.Addons = append(object.Spec.Addons, addon)
		}
		objects = append(objects, object)
	}
	return objects
}

func BenchmarkRead(b *testing.B) {
	objects := large()
	for b.Loop() {
		sourcesOf(b, objects...)
	}
}

func BenchmarkMerge(b *testing.B) {
	sources := sourcesOf(b, large()...)
	for b.Loop() {
		asBefore(sources)
	}
}

func BenchmarkAvailable12Platforms(b *testing.B) {
	var entries []*catalogue.Entry
	for name, addon := range asBefore(sourcesOf(b, large()...)).Addons {
		entry, err := catalogue.NewEntry(&v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: addon.Spec})
		if err != nil {
			b.Fatal(err)
		}
		entries = append(entries, entry)
	}
	for b.Loop() {
		for minor := range 12 {
			_, err := catalogue.Available(entries, catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: fmt.Sprintf("v1.%d.0", 30+minor)})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestTheFirstCatalogueThatNamesASlotDecides fails when a slot is lost in the merge, when one of lower precedence or
// of a newer version wins, when an empty slot removes one, or when a slot counts as content: a change of it would
// render everything again.
func TestTheFirstCatalogueThatNamesASlotDecides(t *testing.T) {
	version := func(name string) []v1.AddonVersion {
		return []v1.AddonVersion{{
			Version: name, Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source: &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git"}},
		}}
	}
	mergedOf := func(slots ...v1.Slot) *catalogue.MergedAddon {
		var sources []*catalogue.Source
		for i, slot := range slots {
			object := &v1.AddonCatalogue{}
			object.Name, object.UID = fmt.Sprintf("c%d", i), types.UID(fmt.Sprintf("c%d", i))
			object.Spec = v1.AddonCatalogueSpec{
				Priority: int32(10 - i), Addons: []v1.Addon{{Name: "net", Slot: slot, Versions: version(fmt.Sprintf("%d.0.0", i+1))}},
			}
			source, err := catalogue.Read(object)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source)
		}
		return asBefore(sources).Addons["net"]
	}
	for _, test := range []struct {
		why   string
		slots []v1.Slot
		want  v1.Slot
	}{
		{"nobody names one", []v1.Slot{"", ""}, ""},
		{"the one of precedence does", []v1.Slot{v1.SlotCNI, v1.SlotSystem}, v1.SlotCNI},
		{"the one of precedence is silent", []v1.Slot{"", v1.SlotCSI, v1.SlotCPI}, v1.SlotCSI},
	} {
		if got := mergedOf(test.slots...).Spec.Addons[0].Slot; got != test.want {
			t.Errorf("%s: slot %q, want %q", test.why, got, test.want)
		}
	}
	before, after := mergedOf(""), mergedOf(v1.SlotCNI)
	if before.Digest == after.Digest {
		t.Error("seeds don't see that the slot is another")
	}
	if before.Origins["1.0.0"] != after.Origins["1.0.0"] {
		t.Error("a slot is part of a version's digest")
	}
	wrong := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{{Name: "net", Slot: "Network", Versions: version("1.0.0")}}}}
	if _, err := catalogue.Read(wrong); err == nil {
		t.Error("a slot that is none is read")
	}
}

// TestTheFirstCatalogueThatNamesANamespaceDecides fails when the namespace for installations that name none is lost
// in the merge, when one of lower precedence wins or adds to it, or when an invalid one is read.
func TestTheFirstCatalogueThatNamesANamespaceDecides(t *testing.T) {
	versions := func(name string) []v1.AddonVersion {
		return []v1.AddonVersion{{
			Version: name, Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source: &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git"}},
		}}
	}
	var sources []*catalogue.Source
	for i, addon := range []v1.Addon{{}, {TargetNamespace: "first"}, {TargetNamespace: "second", CreateNamespace: true}} {
		object := &v1.AddonCatalogue{}
		object.Name, object.UID = fmt.Sprintf("c%d", i), types.UID(fmt.Sprintf("c%d", i))
		addon.Name, addon.Versions = "net", versions(fmt.Sprintf("%d.0.0", i+1))
		object.Spec = v1.AddonCatalogueSpec{Priority: int32(10 - i), Addons: []v1.Addon{addon}}
		source, err := catalogue.Read(object)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
	}
	merged := asBefore(sources).Addons["net"].Spec.Addons[0]
	if merged.TargetNamespace != "first" || merged.CreateNamespace {
		t.Errorf("namespace %q, made: %t", merged.TargetNamespace, merged.CreateNamespace)
	}
	for why, addon := range map[string]v1.Addon{
		"no name of a namespace": {TargetNamespace: "No!"}, "one that is to be made, without a name": {CreateNamespace: true},
	} {
		addon.Name, addon.Versions = "net", versions("1.0.0")
		if _, err := catalogue.Read(&v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Addons: []v1.Addon{addon}}}); err == nil {
			t.Errorf("%s is read", why)
		}
	}
}
