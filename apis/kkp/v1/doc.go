// Package v1 contains the parts of KKP's kinds Seed, Cluster, IPAMAllocation and KubermaticConfiguration that Trellis reads. Their CRDs
// belong to KKP. Trellis does not read fields that are not listed here, and does not lose them, since it updates these objects only by
// patches. In standalone mode Trellis writes Cluster.status through a patch of exactly the fields listed here; there are no
// IPAMAllocations and no KubermaticConfiguration then.
//
// Sources: sdk/apis/kubermatic/v1/datacenter.go, cluster.go, ipam_allocation.go and configuration.go of KKP v2.31.
//
// +kubebuilder:object:generate=true
// +groupName=kubermatic.k8c.io
package v1
