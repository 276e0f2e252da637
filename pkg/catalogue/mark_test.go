package catalogue_test

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// sealed is a merged object as the distributor writes it, with the digest of its content.
func sealed(t *testing.T, key []byte) *v1.AddonCatalogue {
	t.Helper()
	authored := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: "kubermatic", Name: "tools", UID: "tools"}}
	authored.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	authored.OwnerReferences = []metav1.OwnerReference{{Name: "git", Controller: new(true)}}
	authored.Spec.Addons = []v1.Addon{{Name: "web", Versions: []v1.AddonVersion{
		{Version: "1.0.0", Values: &runtime.RawExtension{Raw: []byte(`{"b":1.50,"a":[true]}`)}}, {Version: "1.1.0"},
	}}}
	source, err := catalogue.Read(authored)
	if err != nil {
		t.Fatal(err)
	}
	merged := asBefore([]*catalogue.Source{source}).Addons["web"]
	if origin := merged.Origins["1.0.0"]; origin.Git != "git" || origin.Catalogue != "tools" {
		t.Fatalf("the origin is %+v", origin)
	}
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: "addon-catalogue", Name: "web", Labels: map[string]string{v1.LabelRole: v1.RoleMerged},
		Annotations: map[string]string{
			v1.AnnotationDigest: merged.Digest, v1.AnnotationVersions: merged.OriginsJSON(), v1.AnnotationKKPVersion: "v2.31.0",
			v1.AnnotationLeftVersions: `["0.9.0"]`,
		},
	}, Spec: *merged.Spec.DeepCopy()}
	content, err := catalogue.ContentDigest(object)
	if err != nil || content != merged.Digest {
		t.Fatalf("the content's digest is %q, %v: want %q, which the merge gives", content, err, merged.Digest)
	}
	object.Annotations[v1.AnnotationMark] = catalogue.Mark(key, object, merged.Digest)
	return object
}

// TestAMarkCoversAllThatIsRead checks that a client without the key can neither change a field of a merged object
// that is read, nor move the object.
func TestAMarkCoversAllThatIsRead(t *testing.T) {
	t.Parallel()
	key, other := bytes.Repeat([]byte{7}, catalogue.MarkKeySize), bytes.Repeat([]byte{8}, catalogue.MarkKeySize)
	if !catalogue.IsMarked(key, sealed(t, key)) {
		t.Fatal("what was marked is not known again")
	}
	spelled := sealed(t, key)
	spelled.Spec.Addons[0].Versions[1].Values.Raw = []byte(`{"a": [true], "b": 1.50}`)
	if !catalogue.IsMarked(key, spelled) {
		t.Error("another spelling of the same values is not known again")
	}
	for why, change := range map[string]func(*v1.AddonCatalogue){
		"another key":        func(o *v1.AddonCatalogue) { *o = *sealed(t, other) },
		"no mark":            func(o *v1.AddonCatalogue) { delete(o.Annotations, v1.AnnotationMark) },
		"the key's ID alone": func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationMark] = catalogue.MarkKeyID(key) + ":" },
		"another name":       func(o *v1.AddonCatalogue) { o.Name = "web2" },
		"another namespace":  func(o *v1.AddonCatalogue) { o.Namespace = "elsewhere" },
		"another type":       func(o *v1.AddonCatalogue) { o.Spec.Type = v1.CatalogueCore },
		"another add-on":     func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Name = "other" },
		"another version":    func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions[0].Version = "99.0.0" },
		"a version more": func(o *v1.AddonCatalogue) {
			o.Spec.Addons[0].Versions = append(o.Spec.Addons[0].Versions, v1.AddonVersion{Version: "99.0.0"})
		},
		"a version less": func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions = o.Spec.Addons[0].Versions[:1] },
		"an add-on more": func(o *v1.AddonCatalogue) { o.Spec.Addons = append(o.Spec.Addons, o.Spec.Addons[0]) },
		"no add-on":      func(o *v1.AddonCatalogue) { o.Spec.Addons = nil },
		"another source": func(o *v1.AddonCatalogue) {
			o.Spec.Addons[0].Versions[0].Source = &v1.Source{Git: &v1.GitSource{Remote: "https://x"}}
		},
		"other values":        func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions[1].Values.Raw = []byte(`{"b":1.5,"a":[true]}`) },
		"another description": func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Description = "x" },
		"another KKP version": func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationKKPVersion] = "v2.99.0" },
		"another origin": func(o *v1.AddonCatalogue) {
			o.Annotations[v1.AnnotationVersions] = strings.ReplaceAll(o.Annotations[v1.AnnotationVersions], "tools", "core")
		},
		"no origins":          func(o *v1.AddonCatalogue) { delete(o.Annotations, v1.AnnotationVersions) },
		"another digest":      func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationDigest] = "sha256:0" },
		"other versions left": func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationLeftVersions] = `["1.1.0"]` },
		"a part moved to next": func(o *v1.AddonCatalogue) {
			o.Annotations[v1.AnnotationLeftVersions], o.Annotations[v1.AnnotationKKPVersion] = "", `v2.31.0["0.9.0"]`
		},
	} {
		object := sealed(t, key)
		change(object)
		if catalogue.IsMarked(key, object) {
			t.Errorf("%s: it is still believed", why)
		}
	}
}

func TestLeaveIsRead(t *testing.T) {
	t.Parallel()
	found, err := catalogue.ReadLeave("rbac=99.0.0, canal=v3.28.0,rbac=98.0.0")
	if err != nil || found.Of("rbac") != `["98.0.0","99.0.0"]` || found.Of("canal") != `["v3.28.0"]` || found.Of("csi") != "" ||
		found.String() != "canal v3.28.0, rbac 98.0.0, rbac 99.0.0" {
		t.Errorf("read %v, %v", found, err)
	}
	for _, wrong := range []string{
		"rbac", "=1", "rbac=", "rbac=1,,", `rbac="1"`, strings.Repeat("a=1,", 64) + "a=1", "a=" + strings.Repeat("1", 9000),
	} {
		if found, err := catalogue.ReadLeave(wrong); err == nil {
			t.Errorf("%.20q is read as %v", wrong, found)
		}
	}
}

// TestVersionsThatAreLeft checks the way back from a compromised or withdrawn version of a core add-on.
func TestVersionsThatAreLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why, versions, left, wanted, installed, want string
		kind                                         v1.CatalogueType
		custom                                       bool
	}{
		{why: "the hijacked one is still offered", versions: "1.0.0 99.0.0", left: `["99.0.0"]`, installed: "99.0.0", want: "1.0.0"},
		{why: "in another spelling", versions: "1.0.0 v99.0.0", left: `["99"]`, installed: "99.0.0", want: "1.0.0"},
		{why: "it was withdrawn", versions: "1.0.0 1.1.0", left: `["99.0.0"]`, installed: "99.0.0", want: "1.1.0"},
		{why: "a range of the list", versions: "1.0.0 1.1.0", left: `["99.0.0"]`, wanted: "~1.0", installed: "99.0.0", want: "1.0.0"},
		{why: "a version of the list", versions: "1.0.0 1.1.0", left: `["99.0.0"]`, wanted: "1.0.0", installed: "99.0.0", want: "1.0.0"},
		{why: "a new cluster does not get it", versions: "1.0.0 99.0.0", left: `["99.0.0"]`, want: "1.0.0"},
		{why: "a cluster that left it does not get it again", versions: "1.0.0 99.0.0", left: `["99.0.0"]`, installed: "1.0.0", want: "1.0.0"},
		{why: "what is above others stays above them", versions: "1.0.0 99.0.0", left: `["99.0.0"]`, installed: "2.0.0"},
		{why: "asked for by name", versions: "1.0.0 99.0.0", left: `["99.0.0"]`, wanted: "99.0.0", installed: "99.0.0"},
		{why: "nothing else is there", versions: "99.0.0", left: `["99.0.0"]`, installed: "99.0.0"},
		{why: "nothing is to be left", versions: "1.0.0", installed: "99.0.0"},
		{why: "a Custom add-on goes by its own annotation", kind: v1.CatalogueCustom, versions: "1.0.0", left: `["99.0.0"]`, installed: "99.0.0"},
		{why: "so does somebody's installation", kind: v1.CatalogueCustom, custom: true, versions: "1.0.0", left: `["99.0.0"]`, installed: "99.0.0"},
	} {
		merged := &v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCore, Addons: []v1.Addon{{Name: "rbac"}}}}
		if test.kind != "" {
			merged.Spec.Type = test.kind
		}
		for version := range strings.FieldsSeq(test.versions) {
			merged.Spec.Addons[0].Versions = append(merged.Spec.Addons[0].Versions, v1.AddonVersion{Version: version})
		}
		merged.Annotations = map[string]string{v1.AnnotationLeftVersions: test.left}
		entry, err := catalogue.NewEntry(merged)
		if err != nil {
			t.Fatal(err)
		}
		found, err := catalogue.Select(entry, test.wanted, test.installed, catalogue.Platform{KKPVersion: "2.31.0", K8sVersion: "1.36.3"},
			catalogue.SelectOptions{Core: !test.custom})
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%s: it goes to %q", test.why, found.Version.Version)
		case test.want != "" && (err != nil || found.Version.Version != test.want):
			t.Errorf("%s: got %v, %v, want %q", test.why, found.Version, err, test.want)
		}
		if key := found.AvailableUpdate; strings.HasPrefix(key, "99") || strings.HasPrefix(key, "v99") {
			t.Errorf("%s: %q is offered as an update", test.why, key)
		}
	}
}
