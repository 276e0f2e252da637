package resolution_test

import (
	"encoding/json"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// offered is an add-on as the tests of selection write it.
type offered struct{ version, k8s, deprecated string }

func entryOf(t *testing.T, kind v1.CatalogueType, versions ...offered) *catalogue.Entry {
	t.Helper()
	return entryWith(t, kind, nil, versions...)
}

// leaving is an entry of a Core catalogue with a version that core installations have to leave.
func leaving(t *testing.T, left string, versions ...offered) *catalogue.Entry {
	t.Helper()
	return entryWith(t, v1.CatalogueCore, map[string]string{v1.AnnotationLeftVersions: `["` + left + `"]`}, versions...)
}

func entryWith(t *testing.T, kind v1.CatalogueType, annotations map[string]string, versions ...offered) *catalogue.Entry {
	t.Helper()
	addon := v1.Addon{Name: "prometheus"}
	origins := map[string]catalogue.Origin{}
	for _, version := range versions {
		spec := v1.AddonVersion{
			Version: version.version, Deprecated: version.deprecated,
			Template: &v1.Template{Method: v1.MethodGoTemplate}, Source: &v1.Source{},
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
	all := map[string]string{v1.AnnotationVersions: string(encoded)}
	maps.Copy(all, annotations)
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Annotations: all},
		Spec:       v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{addon}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}
