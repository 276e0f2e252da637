package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IPAMAllocation is a range or a list of addresses that a pool allocated to a cluster. It is in the cluster's namespace and named after
// the pool.
//
// +kubebuilder:object:root=true
type IPAMAllocation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the allocation.
	Spec IPAMAllocationSpec `json:"spec,omitempty"`
}

// IPAMAllocationList is a list of IPAMAllocations.
//
// +kubebuilder:object:root=true
type IPAMAllocationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPAMAllocation `json:"items"`
}

// IPAMAllocationSpec is the allocation.
type IPAMAllocationSpec struct {
	// type is prefix or range.
	Type string `json:"type"`
	// cidr, for type prefix.
	// +optional
	CIDR string `json:"cidr,omitempty"`
	// addresses, for type range.
	// +optional
	Addresses []string `json:"addresses,omitempty"`
}

// KubermaticConfiguration is KKP's own configuration; there is one in the platform's namespace.
//
// +kubebuilder:object:root=true
type KubermaticConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the configuration.
	Spec KubermaticConfigurationSpec `json:"spec,omitempty"`
}

// KubermaticConfigurationList is a list of KubermaticConfigurations.
//
// +kubebuilder:object:root=true
type KubermaticConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubermaticConfiguration `json:"items"`
}

// KubermaticConfigurationSpec is the configuration.
type KubermaticConfigurationSpec struct {
	// userCluster has settings of user clusters.
	// +optional
	UserCluster UserClusterConfiguration `json:"userCluster,omitempty"`
}

// UserClusterConfiguration has settings of user clusters.
type UserClusterConfiguration struct {
	// overwriteRegistry replaces the registry of all images.
	// +optional
	OverwriteRegistry string `json:"overwriteRegistry,omitempty"`
}
