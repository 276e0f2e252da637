package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the group of Cluster API's own kinds.
const Group = "cluster.x-k8s.io"

// Kind is the kind of Clusters.
const Kind = "Cluster"

// The versions that Trellis reads, in order of preference.
var (
	V1Beta2 = schema.GroupVersion{Group: Group, Version: "v1beta2"}
	V1Beta1 = schema.GroupVersion{Group: Group, Version: "v1beta1"}
)

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	for version, kinds := range map[schema.GroupVersion][2]runtime.Object{
		V1Beta2: {&Cluster{}, &ClusterList{}}, V1Beta1: {&ClusterV1Beta1{}, &ClusterV1Beta1List{}},
	} {
		scheme.AddKnownTypeWithName(version.WithKind(Kind), kinds[0])
		scheme.AddKnownTypeWithName(version.WithKind(Kind+"List"), kinds[1])
		metav1.AddToGroupVersion(scheme, version)
	}
	return nil
}

// Names that Cluster API uses.
const (
	// AnnotationPaused pauses a Cluster, as spec.paused does, with any value.
	AnnotationPaused = Group + "/paused"
	// LabelClusterName is on the objects and Secrets of a Cluster, and has its name.
	LabelClusterName = Group + "/cluster-name"
	// KubeconfigSuffix and the Cluster's name make up the name of the Secret with its kubeconfig.
	KubeconfigSuffix = "-kubeconfig"
	// KubeconfigKey is the key of the kubeconfig in that Secret.
	KubeconfigKey = "value"
	// AnnotationBeforeUpgrade on a Cluster, with any value, prevents the start of an upgrade. Any annotation with this prefix does; this
	// one is Trellis's.
	AnnotationBeforeUpgrade = "before-upgrade.hook.cluster." + Group + "/trellis"
	// AnnotationHoldSequence on a pool of a topology, with any value, holds the upgrade of the pool and of those behind it.
	AnnotationHoldSequence = "topology." + Group + "/hold-upgrade-sequence"
	// ConditionControlPlaneInitialized says that an API server answers.
	ConditionControlPlaneInitialized = "ControlPlaneInitialized"
)

// Cluster is a Cluster of either version. Fields that the versions have in different places are separate fields here.
//
// +kubebuilder:object:root=true
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the requested state.
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is the state that Cluster API reports.
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterV1Beta1 is a Cluster if nothing newer than v1beta1 is served. Each version needs its own type.
//
// +kubebuilder:object:root=true
type ClusterV1Beta1 struct {
	Cluster `json:",inline"`
}

// ClusterV1Beta1List is a list of Clusters of v1beta1.
//
// +kubebuilder:object:root=true
type ClusterV1Beta1List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterV1Beta1 `json:"items"`
}

// ClusterSpec is the requested state of a Cluster.
type ClusterSpec struct {
	// paused stops Cluster API's controllers.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// clusterNetwork is the network of the cluster.
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitempty"`
	// controlPlaneEndpoint is the address of the API server.
	// +optional
	ControlPlaneEndpoint Endpoint `json:"controlPlaneEndpoint,omitempty"`
	// controlPlaneRef is the control plane, an object of a provider's kind.
	// +optional
	ControlPlaneRef Reference `json:"controlPlaneRef,omitempty"`
	// infrastructureRef is the infrastructure, an object of a provider's kind.
	// +optional
	InfrastructureRef Reference `json:"infrastructureRef,omitempty"`
	// topology is the input of the ClusterClass for the cluster.
	// +optional
	Topology Topology `json:"topology,omitempty"`
}

// ClusterNetwork is the network of a cluster.
type ClusterNetwork struct {
	// services has the ranges of addresses of Services.
	// +optional
	Services NetworkRanges `json:"services,omitempty"`
	// pods has the ranges of addresses of pods.
	// +optional
	Pods NetworkRanges `json:"pods,omitempty"`
	// serviceDomain is the domain of Services.
	// +optional
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges are ranges of addresses.
type NetworkRanges struct {
	// cidrBlocks are these ranges.
	// +optional
	CIDRBlocks []string `json:"cidrBlocks,omitempty"`
}

// Endpoint is the address of an API server.
type Endpoint struct {
	// host is a name or an address.
	// +optional
	Host string `json:"host,omitempty"`
	// port of it.
	// +optional
	Port int32 `json:"port,omitempty"`
}

// Reference names an object of the Cluster's own namespace. The namespace in v1beta1 is not read.
type Reference struct {
	// apiGroup is the group, in v1beta2.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// apiVersion has the group, in v1beta1.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
}

// GroupKind returns the kind of the reference; it is empty if there is no reference.
func (r Reference) GroupKind() schema.GroupKind {
	if r.APIGroup != "" || r.APIVersion == "" {
		return schema.GroupKind{Group: r.APIGroup, Kind: r.Kind}
	}
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return schema.GroupKind{Group: group, Kind: r.Kind}
}

// Topology is the input of a ClusterClass for a cluster.
type Topology struct {
	// version of Kubernetes that is requested.
	// +optional
	Version string `json:"version,omitempty"`
	// workers are the pools of machines.
	// +optional
	Workers TopologyWorkers `json:"workers,omitempty"`
}

// TopologyWorkers are the pools of machines of a topology, which are upgraded in this order.
type TopologyWorkers struct {
	// machineDeployments are pools of one kind.
	// +optional
	MachineDeployments []WorkerPool `json:"machineDeployments,omitempty"`
	// machinePools are pools of the other kind.
	// +optional
	MachinePools []WorkerPool `json:"machinePools,omitempty"`
}

// WorkerPool is one pool of machines.
type WorkerPool struct {
	// metadata of the objects created from it.
	// +optional
	Metadata PoolMetadata `json:"metadata,omitempty"`
	// name of the pool.
	Name string `json:"name"`
}

// PoolMetadata is the metadata of a pool in a topology.
type PoolMetadata struct {
	// labels of the pool.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the pool.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ClusterStatus is the state of a Cluster that Cluster API reports.
type ClusterStatus struct {
	// initialization is the progress of the initialization, in v1beta2.
	// +optional
	Initialization Initialization `json:"initialization,omitempty"`
	// controlPlane is the state of the control plane, in v1beta2.
	// +optional
	ControlPlane ControlPlaneStatus `json:"controlPlane,omitempty"`
	// workers is the state of the pools of machines, in v1beta2.
	// +optional
	Workers WorkersStatus `json:"workers,omitempty"`
	// conditions, of which Trellis reads the types with a constant here.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Initialization is the progress of a cluster's initialization.
type Initialization struct {
	// controlPlaneInitialized says that an API server answers.
	// +optional
	ControlPlaneInitialized bool `json:"controlPlaneInitialized,omitempty"`
}

// ControlPlaneStatus is the state of a control plane.
type ControlPlaneStatus struct {
	// versions of Kubernetes that its machines have.
	// +optional
	Versions []StatusVersion `json:"versions,omitempty"`
	// upgradePlan lists the outstanding versions, in their order.
	// +optional
	UpgradePlan []StatusVersion `json:"upgradePlan,omitempty"`
}

// WorkersStatus is the state of the pools of machines.
type WorkersStatus struct {
	// upgradePlan lists the outstanding versions, in their order.
	// +optional
	UpgradePlan []StatusVersion `json:"upgradePlan,omitempty"`
}

// StatusVersion is one version.
type StatusVersion struct {
	// version such as v1.36.3.
	// +optional
	Version string `json:"version,omitempty"`
}

// Condition has the fields that conditions of both versions have.
type Condition struct {
	// type of the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
}
