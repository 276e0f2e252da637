// Package v1 contains the kinds of Trellis, AddonCatalogue, AddonInstallation and AddonSet, in API group kubermatic.k8c.io.
//
// An AddonCatalogue defines add-ons: their versions, the source of each version, how it is rendered and which clusters it fits. An
// AddonInstallation requests one add-on in the user cluster to which its namespace on the seed belongs. An AddonSet installs add-ons in
// many clusters. All follow the Kubernetes API conventions; their spec pages are in docs/spec.
//
// +kubebuilder:object:generate=true
// +groupName=kubermatic.k8c.io
package v1
