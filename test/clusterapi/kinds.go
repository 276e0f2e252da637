package clusterapi

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups of Cluster API and of the stand-in for providers.
const (
	Group               = "cluster.x-k8s.io"
	InfrastructureGroup = "infrastructure.cluster.x-k8s.io"
	ControlPlaneGroup   = "controlplane.cluster.x-k8s.io"
	BootstrapGroup      = "bootstrap.cluster.x-k8s.io"

	// providerVersion is the version of the stand-in's kinds.
	providerVersion = "v1"
)

// Kinds of Cluster API, in its newest version and in the one before, and the two of the stand-in that stand for a user cluster.
var (
	ClusterKind           = schema.GroupVersionKind{Group: Group, Version: "v1beta2", Kind: "Cluster"}
	OlderClusterKind      = schema.GroupVersionKind{Group: Group, Version: "v1beta1", Kind: "Cluster"}
	MachineDeploymentKind = schema.GroupVersionKind{Group: Group, Version: "v1beta2", Kind: "MachineDeployment"}
	MachinePoolKind       = schema.GroupVersionKind{Group: Group, Version: "v1beta2", Kind: "MachinePool"}
	ControlPlaneKind      = schema.GroupVersionKind{Group: ControlPlaneGroup, Version: providerVersion, Kind: "FleetControlPlane"}
	InfraClusterKind      = schema.GroupVersionKind{Group: InfrastructureGroup, Version: providerVersion, Kind: "FleetCluster"}

	classKind = schema.GroupVersionKind{Group: Group, Version: "v1beta2", Kind: "ClusterClass"}
)

// providerKinds are the stand-in's kinds, of each of which there is a template too.
var providerKinds = []schema.GroupKind{
	{Group: InfrastructureGroup, Kind: "FleetCluster"},
	{Group: InfrastructureGroup, Kind: "FleetMachine"},
	{Group: InfrastructureGroup, Kind: "FleetMachinePool"},
	{Group: ControlPlaneGroup, Kind: "FleetControlPlane"},
	{Group: BootstrapGroup, Kind: "FleetConfig"},
}

// providerCRDs are the stand-in's CRDs, as Cluster API's contract asks for: named by the kind, with a label that says which version
// keeps contract v1beta2.
func providerCRDs() []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range providerKinds {
		all = append(all, providerCRD(kind.Group, kind.Kind), providerCRD(kind.Group, kind.Kind+"Template"))
	}
	return all
}

func providerCRD(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	free := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &free}
	plural := strings.ToLower(kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Labels = plural+"."+group, map[string]string{Group + "/v1beta2": providerVersion}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind), Categories: []string{"cluster-api"},
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: providerVersion, Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
			}},
		}},
	}
	return crd
}

// object is an empty object of that kind.
func object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// list is an empty list of objects of that kind.
func list(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	made := &unstructured.UnstructuredList{}
	made.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return made
}

// controllerOf is an owner reference to the object, as its controller.
func controllerOf(owner *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
}
