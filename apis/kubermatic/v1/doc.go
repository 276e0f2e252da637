// Package v1 holds the kinds of Trellis, AddonCatalogue, AddonInstallation and AddonSet, in API group kubermatic.k8c.io.
//
// An AddonCatalogue says which add-ons exist, in which versions, where each version comes from, how it is rendered and
// which clusters it fits. An AddonInstallation asks for one add-on in the user cluster whose namespace on the seed it
// lives in. Both follow the Kubernetes API conventions; the kinds' spec pages are docs/spec/addoncatalogue.md and
// docs/spec/addoninstallation.md.
//
// +kubebuilder:object:generate=true
// +groupName=kubermatic.k8c.io
package v1
