// Package given makes the objects that tests begin with, each with what it needs to count: wishes for add-ons, catalogues and their
// versions, Secrets that the platform knows. Where a test asks for more, a change says so.
package given

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// Authority is the Secret with the certificates of the sources.
	Authority = "authority"
	// Kubernetes is the version of a platform's Clusters where a test asks for no other.
	Kubernetes = "v1.36.3"
	// KKP is the version of the platform.
	KKP = "v2.31.0"
)

// Installation is the wish for an add-on, in any version, in a namespace of the user cluster that is there.
func Installation(namespace, name, addon, target string, changes ...func(*v1.AddonInstallation)) *v1.AddonInstallation {
	made := &v1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: v1.AddonName(addon)}, TargetNamespace: target},
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

// In has an installation ask for a version; "" is the newest that fits.
func In(version string) func(*v1.AddonInstallation) {
	return func(made *v1.AddonInstallation) { made.Spec.AddonRef.Version = version }
}

// NewNamespace has an installation make its namespace.
func NewNamespace(made *v1.AddonInstallation) { made.Spec.CreateNamespace = true }

// Core makes an installation a core add-on.
func Core(made *v1.AddonInstallation) { made.Spec.CoreAddon = true }

// Values has an installation give values, in JSON.
func Values(text string) func(*v1.AddonInstallation) {
	return func(made *v1.AddonInstallation) { made.Spec.Values = &runtime.RawExtension{Raw: []byte(text)} }
}

// Catalogue is one that people write.
func Catalogue(namespace, name string, addons ...v1.Addon) *v1.AddonCatalogue {
	return &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.AddonCatalogueSpec{Addons: addons}}
}

// InGit is a catalogue that is generated from a repository.
func InGit(namespace, name, url, authority string) *v1.AddonCatalogue {
	made := Catalogue(namespace, name)
	made.Spec.Git = &v1.CatalogueGit{Remote: v1.GitRemote(url), CASecretRef: &v1.LocalReference{Name: authority}}
	return made
}

// Merged is the merged catalogue of an add-on, as the distributor writes it to a seed, without its mark.
func Merged(namespace string, kind v1.CatalogueType, addon v1.Addon) *v1.AddonCatalogue {
	made := Catalogue(namespace, string(addon.Name), addon)
	made.Labels, made.Annotations = map[string]string{v1.LabelRole: v1.RoleMerged}, map[string]string{v1.AnnotationKKPVersion: KKP}
	made.Spec.Type = kind
	return made
}

// WithOrigins notes where the versions of a merged catalogue come from, by version.
func WithOrigins[T any](made *v1.AddonCatalogue, origins map[string]T) *v1.AddonCatalogue {
	encoded, err := json.Marshal(origins)
	if err != nil {
		panic(err) // of a test's own words
	}
	made.Annotations[v1.AnnotationVersions] = string(encoded)
	return made
}

// Available is the available catalogue of a cluster, with one add-on.
func Available(key client.ObjectKey, owners ...metav1.OwnerReference) *v1.AddonCatalogue {
	made := Catalogue(key.Namespace, key.Name, Addon("some", v1.AddonVersion{Version: "1"}))
	made.Labels, made.OwnerReferences = map[string]string{v1.LabelRole: v1.RoleAvailable}, owners
	made.Spec.Type = v1.CatalogueCustom
	return made
}

// Addon is what a catalogue offers under a name.
func Addon(name string, versions ...v1.AddonVersion) v1.Addon {
	return v1.Addon{Name: v1.AddonName(name), Versions: versions}
}

// Version is one whose method is that of its source: Helm for charts of Helm repositories, templates for all else.
func Version(version string, source *v1.Source) v1.AddonVersion {
	method := v1.MethodGoTemplate
	if source.Helm != nil {
		method = v1.MethodHelm
	}
	return v1.AddonVersion{Version: version, Template: &v1.Template{Method: method}, Source: source}
}

// Git is a folder of a repository, "" for all of it, with the sources' authority.
func Git(url, folder string) *v1.Source {
	return &v1.Source{Git: &v1.GitSource{Remote: v1.GitRemote(url), Path: folder, CASecretRef: &v1.LocalReference{Name: Authority}}}
}

// Chart is one of a Helm repository, with the sources' authority.
func Chart(url, name, version string) *v1.Source {
	return &v1.Source{Helm: &v1.HelmSource{URL: url, Chart: name, Version: version, CASecretRef: &v1.LocalReference{Name: Authority}}}
}

// Set puts an add-on, in any version, in a namespace of its name on all clusters.
func Set(namespace, name string, addon v1.AddonName) *v1.AddonSet {
	return &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{},
		Addons:          []v1.AddonSetItem{{Name: addon, AddonRef: v1.AddonReference{Name: addon}, TargetNamespace: string(addon)}},
	}}
}
