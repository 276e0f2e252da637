// Package v1 holds the slices of KKP's kinds Seed and Cluster that Trellis reads. Their CRDs belong to KKP; fields that
// are not listed here are neither read nor, since Trellis never updates these objects but by patch, lost. In standalone
// mode Trellis writes Cluster.status through a patch of exactly the fields listed here.
//
// Sources: sdk/apis/kubermatic/v1/datacenter.go and cluster.go of KKP v2.31.
//
// +kubebuilder:object:generate=true
// +groupName=kubermatic.k8c.io
package v1
