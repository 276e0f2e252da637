package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "kubermatic.k8c.io", Version: "v1"}

// AddToScheme registers the kinds of this package.
var AddToScheme = (&builder).AddToScheme

var builder = runtime.NewSchemeBuilder(addKnownTypes)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &AddonCatalogue{}, &AddonCatalogueList{}, &AddonInstallation{}, &AddonInstallationList{},
		&AddonSet{}, &AddonSetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
