package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// GroupVersion is the group and version of KKP's kinds.
var GroupVersion = schema.GroupVersion{Group: "kubermatic.k8c.io", Version: "v1"}

// AddToScheme registers the kinds of this package.
var AddToScheme = (&builder).AddToScheme

var builder = runtime.NewSchemeBuilder(addKnownTypes)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Seed{}, &SeedList{}, &Cluster{}, &ClusterList{},
		&IPAMAllocation{}, &IPAMAllocationList{}, &KubermaticConfiguration{}, &KubermaticConfigurationList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// LabelWorkerName on a Cluster or Seed assigns it to the controllers with the same --worker-name.
const LabelWorkerName = "worker-name"

// AnnotationSecretType marks Secrets for sources in KKP (pkg/ee, application-secret-synchronizer). Such a Secret needs no label of
// Trellis.
const AnnotationSecretType = "apps.kubermatic.k8c.io/secret-type"

// Seed is a region's seed cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Seed struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says where the seed is.
	Spec SeedSpec `json:"spec,omitempty"`
	// status is the state that KKP reports.
	Status SeedStatus `json:"status,omitempty"`
}

// SeedList is a list of Seeds.
//
// +kubebuilder:object:root=true
type SeedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Seed `json:"items"`
}

// SeedSpec says where a seed is.
type SeedSpec struct {
	// kubeconfig names the Secret with the seed's kubeconfig: namespace (default: the Seed's), name, and in fieldPath the
	// key (default "kubeconfig").
	// +optional
	Kubeconfig ObjectReference `json:"kubeconfig,omitempty"`
	// datacenters by name; each name is in only one Seed.
	// +optional
	Datacenters map[string]Datacenter `json:"datacenters,omitempty"`
}

// ObjectReference names an object, with the fields of Kubernetes' own ObjectReference, which KKP uses. Trellis reads namespace, name and
// fieldPath; the others are listed so that no field is lost if Trellis installs the CRD.
//
// +structType=atomic
type ObjectReference struct {
	// kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// uid of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// apiVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// resourceVersion of the object.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// fieldPath is the referenced part of the object.
	// +optional
	FieldPath string `json:"fieldPath,omitempty"`
}

// Datacenter is where clusters of a seed run.
type Datacenter struct {
	// location of the datacenter.
	// +optional
	Location string `json:"location,omitempty"`
}

// SeedConditionInitialized is the condition of a Seed that can be used.
const SeedConditionInitialized = "ClusterInitialized"

// SeedStatus is the state of a seed that KKP reports.
type SeedStatus struct {
	// versions on the seed.
	// +optional
	Versions SeedVersions `json:"versions,omitempty"`
	// conditions by type. KKP stores them as a map.
	// +optional
	Conditions map[string]SeedCondition `json:"conditions,omitempty"`
}

// SeedVersions are the versions on a seed.
type SeedVersions struct {
	// kubermatic is KKP's version, in git-describe form.
	// +optional
	Kubermatic string `json:"kubermatic,omitempty"`
	// cluster is the seed's Kubernetes version.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// SeedCondition is one condition of a Seed.
type SeedCondition struct {
	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// reason is one CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence.
	// +optional
	Message string `json:"message,omitempty"`
}

// Cluster is a user cluster. The object is on its seed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.controlPlane`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespaceName`
// +kubebuilder:printcolumn:name="APIServer",type=string,JSONPath=`.status.extendedHealth.apiserver`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec has the fields that add-ons depend on.
	Spec ClusterSpec `json:"spec,omitempty"`
	// status is the state that KKP reports.
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

// ClusterSpec is the part of a Cluster's spec that add-ons depend on.
type ClusterSpec struct {
	// humanReadableName is the display name of the cluster.
	// +optional
	HumanReadableName string `json:"humanReadableName,omitempty"`
	// version of Kubernetes, a semantic version.
	// +optional
	Version string `json:"version,omitempty"`
	// cloud says where the cluster runs.
	// +optional
	Cloud CloudSpec `json:"cloud,omitempty"`
	// cniPlugin is the network plugin.
	// +optional
	CNIPlugin *CNIPlugin `json:"cniPlugin,omitempty"`
	// clusterNetwork is the cluster's network.
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitempty"`
	// features that are switched on or off.
	// +optional
	Features map[string]bool `json:"features,omitempty"`
	// pause stops all work on the cluster.
	// +optional
	Pause bool `json:"pause,omitempty"`
	// disableCsiDriver omits the CSI driver.
	// +optional
	DisableCSIDriver bool `json:"disableCsiDriver,omitempty"`
	// mla says whether monitoring and logging run.
	// +optional
	MLA *MLA `json:"mla,omitempty"`
	// componentsOverride has settings of the control plane.
	// +optional
	ComponentsOverride ComponentSettings `json:"componentsOverride,omitempty"`
}

// ComponentSettings has settings of the control plane.
type ComponentSettings struct {
	// apiserver has settings of the API server.
	// +optional
	APIServer APIServerSettings `json:"apiserver,omitempty"`
}

// APIServerSettings has settings of the API server.
type APIServerSettings struct {
	// nodePortRange of Services, such as 30000-32767.
	// +optional
	NodePortRange string `json:"nodePortRange,omitempty"`
}

// CNIPlugin is the network plugin.
type CNIPlugin struct {
	// type is the plugin, such as cilium.
	Type string `json:"type"`
	// version of the plugin.
	// +optional
	Version string `json:"version,omitempty"`
}

// ClusterNetwork is the cluster's network.
type ClusterNetwork struct {
	// services are the ranges of Services.
	// +optional
	Services NetworkRanges `json:"services,omitempty"`
	// pods are the ranges of Pods.
	// +optional
	Pods NetworkRanges `json:"pods,omitempty"`
	// dnsDomain is the domain of Services.
	// +optional
	DNSDomain string `json:"dnsDomain,omitempty"`
	// proxyMode is ipvs, iptables or ebpf.
	// +optional
	ProxyMode string `json:"proxyMode,omitempty"`
	// ipvs has options of proxy mode ipvs.
	// +optional
	IPVS *IPVS `json:"ipvs,omitempty"`
	// nodeCidrMaskSizeIPv4 is the size of a node's range.
	// +optional
	NodeCIDRMaskSizeIPv4 *int32 `json:"nodeCidrMaskSizeIPv4,omitempty"`
	// nodeCidrMaskSizeIPv6 is the size of a node's range.
	// +optional
	NodeCIDRMaskSizeIPv6 *int32 `json:"nodeCidrMaskSizeIPv6,omitempty"`
	// nodeLocalDNSCacheEnabled says whether nodes cache names.
	// +optional
	NodeLocalDNSCacheEnabled *bool `json:"nodeLocalDNSCacheEnabled,omitempty"`
	// konnectivityEnabled says whether konnectivity is used instead of OpenVPN.
	// +optional
	KonnectivityEnabled *bool `json:"konnectivityEnabled,omitempty"`
}

// NetworkRanges are CIDR blocks.
type NetworkRanges struct {
	// cidrBlocks such as 10.96.0.0/16.
	// +optional
	CIDRBlocks []string `json:"cidrBlocks,omitempty"`
}

// IPVS has options of proxy mode ipvs.
type IPVS struct {
	// strictArp of kube-proxy.
	// +optional
	StrictArp *bool `json:"strictArp,omitempty"`
}

// MLA says whether monitoring and logging run.
type MLA struct {
	// monitoringEnabled says whether metrics are collected.
	// +optional
	MonitoringEnabled bool `json:"monitoringEnabled,omitempty"`
	// loggingEnabled says whether logs are collected.
	// +optional
	LoggingEnabled bool `json:"loggingEnabled,omitempty"`
}

// ClusterStatus is the state of a cluster that KKP reports.
type ClusterStatus struct {
	// namespaceName is the cluster's namespace on the seed; set before the namespace exists.
	// +optional
	NamespaceName string `json:"namespaceName,omitempty"`
	// userEmail is the owner's address.
	// +optional
	UserEmail string `json:"userEmail,omitempty"`
	// userName is the owner's name.
	// +optional
	UserName string `json:"userName,omitempty"`
	// versions of the cluster's parts.
	// +optional
	Versions ClusterVersions `json:"versions,omitempty"`
	// address is the address of the API server.
	// +optional
	Address ClusterAddress `json:"address,omitempty"`
	// extendedHealth is the health of the cluster's parts.
	// +optional
	ExtendedHealth ExtendedHealth `json:"extendedHealth,omitempty"`
	// conditions by type. KKP stores them as a map. Trellis reads only their status, since the other fields change all the time.
	// +optional
	Conditions map[string]ClusterCondition `json:"conditions,omitempty"`
}

// ClusterConditionCSIKubeletMigrationCompleted is the condition of a cluster whose in-tree volumes were migrated.
const ClusterConditionCSIKubeletMigrationCompleted = "CSIKubeletMigrationCompleted"

// ClusterCondition is one condition of a Cluster.
type ClusterCondition struct {
	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
}

// ClusterVersions are the versions of a cluster's parts.
type ClusterVersions struct {
	// controlPlane is the version to compare with.
	// +optional
	ControlPlane string `json:"controlPlane,omitempty"`
}

// ClusterAddress is the address of a cluster's API server.
type ClusterAddress struct {
	// url of the API server.
	// +optional
	URL string `json:"url,omitempty"`
	// port of the API server.
	// +optional
	Port int32 `json:"port,omitempty"`
	// externalName is the DNS name outside of the seed.
	// +optional
	ExternalName string `json:"externalName,omitempty"`
	// internalURL is the DNS name inside of the seed; the Go field is InternalName, as in KKP.
	// +optional
	InternalName string `json:"internalURL,omitempty"`
	// adminToken is the token of a cluster-admin.
	// +optional
	AdminToken string `json:"adminToken,omitempty"`
	// ip of the API server.
	// +optional
	IP string `json:"ip,omitempty"`
	// apiServerExternalAddress is the host or IP outside of the seed.
	// +optional
	APIServerExternalAddress string `json:"apiServerExternalAddress,omitempty"`
}

// Health of a part of a cluster.
const (
	// HealthUp is the health of a part that works.
	HealthUp = "HealthStatusUp"
	// HealthDown is the health of a part that doesn't.
	HealthDown = "HealthStatusDown"
)

// ExtendedHealth is the health of a cluster's parts.
type ExtendedHealth struct {
	// apiserver is the health of the API server.
	// +optional
	APIServer string `json:"apiserver,omitempty"`
}
