// Package v1 holds the slices of Cluster API's kind Cluster that Trellis reads, in versions v1beta2 and v1beta1. The CRD belongs to
// Cluster API; fields that are not listed here are neither read nor, since Trellis changes these objects by merge patches of
// annotations only, lost. Control planes are of kinds that providers bring: of them three fields are read, without a type.
//
// Sources: api/core/v1beta2/cluster_types.go and api/core/v1beta1/cluster_types.go of Cluster API v1.14, the contract of control
// planes in docs/book/src/developer/providers/contracts/control-plane.md there, and util/secret/consts.go for kubeconfigs.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.x-k8s.io
package v1
