// Package v1 contains the parts of Cluster API's kind Cluster that Trellis reads, in versions v1beta2 and v1beta1. The CRD belongs to
// Cluster API. Trellis does not read fields that are not listed here, and does not lose them, since it changes these objects only by
// merge patches of annotations. Providers define the kinds of control planes: Trellis reads three fields of them, without a type.
//
// Sources: api/core/v1beta2/cluster_types.go and api/core/v1beta1/cluster_types.go of Cluster API v1.14, the contract of control
// planes in docs/book/src/developer/providers/contracts/control-plane.md there, and util/secret/consts.go for kubeconfigs.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.x-k8s.io
package v1
