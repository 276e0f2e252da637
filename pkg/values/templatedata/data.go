package templatedata

import (
	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Data is the root of a go-template's data and, for charts, of .Values.kkp.
type Data struct {
	// SeedName is the Seed that has the datacenter; KKP leaves it empty.
	SeedName       string
	DatacenterName string
	Cluster        ClusterData
	// Credentials of the cloud provider; secret.
	Credentials Credentials
	// Variables are the merged values of an installation, above those that KKP sets by flag.
	Variables map[string]any
	// OverwriteRegistry replaces the registry of images in function Image; empty if there is none. In KKP it is a
	// setting of the whole installation and no field.
	OverwriteRegistry string
	// Platform has the platform's settings of the cluster for all add-ons (ADR 102): nodeSelector, tolerations, proxy
	// and registries; all exist, maybe empty. In hashes only those of its list count: see Canonical.
	Platform map[string]any `json:",omitempty"`
	// listed is the part of Platform from the list.
	listed map[string]any
	// BuiltIn is nil only for data of no installation. In hashes it counts only with a credential for the hub: the rest of
	// it follows from other inputs; see Canonical.
	*BuiltIn
}

// ClusterData is the user cluster.
type ClusterData struct {
	// Type is "kubernetes".
	Type string
	// Name is the generated name, such as 47s2ddlfgj.
	Name              string
	HumanReadableName string
	// Namespace of the cluster on its seed.
	Namespace  string
	OwnerName  string
	OwnerEmail string
	Labels     map[string]string
	// Annotations of the Cluster without last-applied configurations.
	Annotations map[string]string
	// Kubeconfig of a cluster-admin; secret.
	Kubeconfig string
	Address    ClusterAddress
	// CloudProviderName is KKP's name, such as aws or bringyourown.
	CloudProviderName string
	// Version of the control plane; nil if unknown.
	Version *semver.Version
	// MajorMinorVersion is "1.36".
	MajorMinorVersion string
	Network           ClusterNetwork
	// Features are the names of the features that are on.
	Features  sets.Set[string]
	CNIPlugin CNIPlugin
	CSI       CSIOptions
	MLA       MLASettings
	// CSIMigration says whether in-tree volumes are or were migrated.
	CSIMigration                       bool
	KubeVirtInfraStorageClasses        []KubeVirtInfraStorageClass
	KubeVirtInfraVolumeSnapshotClasses []KubeVirtInfraVolumeSnapshotClass
	DisableCSIDriver                   bool
}

// ClusterAddress is the address of the API server.
type ClusterAddress struct {
	URL          string
	Port         int32
	ExternalName string
	InternalName string
	// AdminToken is the token of a cluster-admin; secret.
	AdminToken               string
	IP                       string
	APIServerExternalAddress string
}

// ClusterNetwork is the cluster's network.
type ClusterNetwork struct {
	DNSDomain    string
	DNSClusterIP string
	// DNSResolverIP is for nodes: the node-local cache, or the cluster's DNS.
	DNSResolverIP        string
	PodCIDRBlocks        []string
	ServiceCIDRBlocks    []string
	ProxyMode            string
	StrictArp            *bool
	DualStack            bool
	PodCIDRIPv4          string
	PodCIDRIPv6          string
	NodeCIDRMaskSizeIPv4 int32
	NodeCIDRMaskSizeIPv6 int32
	// IPAMAllocations by name of the pool.
	IPAMAllocations map[string]IPAMAllocation
	NodePortRange   string
}

// IPAMAllocation is a range or a list of addresses that a pool gave the cluster.
type IPAMAllocation struct {
	// Type is "prefix" or "range".
	Type      string
	CIDR      string
	Addresses []string
}

// CNIPlugin is the network plugin; empty if the Cluster names none.
type CNIPlugin struct {
	Type    string
	Version string
}

// CSIOptions depend on the cloud provider.
type CSIOptions struct {
	// StoragePolicy is vSphere's.
	StoragePolicy string
	// StorageContainer, Fstype and SsSegmentedIscsiNetwork are Nutanix's.
	StorageContainer        string
	Fstype                  string
	SsSegmentedIscsiNetwork *bool
	// StorageProfile and Filesystem are VMware Cloud Director's.
	StorageProfile string
	Filesystem     string
	// CinderTopologyEnabled is OpenStack's.
	CinderTopologyEnabled bool
	// OverwriteRegistry is KubeVirt's: the registry of the driver's images.
	OverwriteRegistry string
}

// MLASettings say whether monitoring and logging run.
type MLASettings struct {
	MonitoringEnabled bool
	LoggingEnabled    bool
}

// KubeVirtInfraStorageClass is a storage class of the cluster that KubeVirt machines run in.
type KubeVirtInfraStorageClass struct {
	Name                 string
	IsDefaultClass       *bool
	VolumeBindingMode    *string
	Labels               map[string]string
	Zones                []string
	Regions              []string
	VolumeProvisioner    string
	ReclaimPolicy        string
	AllowVolumeExpansion bool
}

// KubeVirtInfraVolumeSnapshotClass is a snapshot class of that cluster.
type KubeVirtInfraVolumeSnapshotClass struct {
	InfraVolumeSnapshotClass string
	IsDefaultClass           *bool
	DeletionPolicy           string
}
