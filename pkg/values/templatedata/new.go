package templatedata

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

const (
	clusterType = "kubernetes"
	// nodeLocalDNSAddress is the link-local address of KKP's node-local DNS cache.
	nodeLocalDNSAddress = "169.254.20.10"
	// csiMigrationAnnotation is set by KKP while a cluster's in-tree volumes need migration.
	csiMigrationAnnotation = "csi-migration.k8c.io/migration-needed"
	// lastAppliedAnnotation has a whole copy of the object.
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
	// initialInstallationsAnnotation contains requests for installations, with values, until they are created.
	initialInstallationsAnnotation = "addons.kubermatic.k8c.io/initial-installations"
	// initialApplicationsAnnotation is the same for KKP's applications.
	initialApplicationsAnnotation = "kubermatic.io/initial-application-installations-request"
)

// Node mask sizes of KKP if the Cluster names none.
const (
	defaultMaskIPv4 = 24
	defaultMaskIPv6 = 64
)

// Options are facts that the Cluster does not have.
type Options struct {
	// SeedName is the Seed that has the cluster's datacenter; empty if unknown.
	SeedName string
	// IPAMAllocations of the cluster namespace, by name.
	IPAMAllocations map[string]IPAMAllocation
	// Variables are set by flag for this add-on.
	Variables map[string]any
	// OverwriteRegistry is KKP's setting for function Image.
	OverwriteRegistry string
	// Platform has the settings of the platform's list for the cluster; nil if there are none. A key of its registries
	// may be null: then that one of Registries does not count. Registries are those of flag --image-mirror.
	Platform   map[string]any
	Registries map[string]string
}

// VersionError says that a Cluster's version is no semantic version.
type VersionError struct{ Cluster, Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("cluster %q: %q is not a semantic version", e.Cluster, e.Version)
}

// New returns the template data without secrets. It shares nothing with the Cluster or the options.
func New(cluster *kkpv1.Cluster, options Options) (Data, error) {
	data := ClusterData{
		Type: clusterType, Name: cluster.Name, HumanReadableName: cluster.Spec.HumanReadableName,
		Namespace: cluster.Status.NamespaceName,
		OwnerName: cluster.Status.UserName, OwnerEmail: cluster.Status.UserEmail,
		Labels: maps.Clone(cluster.Labels), Annotations: annotations(cluster),
		Address: address(cluster.Status.Address), CloudProviderName: providerName(cluster.Spec.Cloud),
		Network: network(cluster, options), Features: features(cluster.Spec.Features),
		CSI: csiOptions(cluster.Spec.Cloud), CSIMigration: csiMigration(cluster),
		KubeVirtInfraStorageClasses:        storageClasses(cluster.Spec.Cloud.Kubevirt),
		KubeVirtInfraVolumeSnapshotClasses: snapshotClasses(cluster.Spec.Cloud.Kubevirt),
		DisableCSIDriver:                   cluster.Spec.DisableCSIDriver,
	}
	if err := setVersion(&data, cluster); err != nil {
		return Data{}, err
	}
	if plugin := cluster.Spec.CNIPlugin; plugin != nil {
		data.CNIPlugin = CNIPlugin{Type: plugin.Type, Version: plugin.Version}
	}
	if mla := cluster.Spec.MLA; mla != nil {
		data.MLA = MLASettings{MonitoringEnabled: mla.MonitoringEnabled, LoggingEnabled: mla.LoggingEnabled}
	}
	return Data{
		SeedName: options.SeedName, DatacenterName: cluster.Spec.Cloud.Datacenter, Cluster: data,
		Variables: cloneVariables(options.Variables), OverwriteRegistry: options.OverwriteRegistry,
		Platform: platform(options.Platform, options.Registries), listed: listed(options.Platform),
	}, nil
}

// setVersion sets the control plane's version, or else the wanted one, or else none.
func setVersion(data *ClusterData, cluster *kkpv1.Cluster) error {
	text := cmp.Or(cluster.Status.Versions.ControlPlane, cluster.Spec.Version)
	if text == "" {
		return nil
	}
	version, err := semver.NewVersion(text)
	if err != nil {
		return &VersionError{Cluster: cluster.Name, Version: text}
	}
	data.Version = version
	data.MajorMinorVersion = fmt.Sprintf("%d.%d", version.Major(), version.Minor())
	return nil
}

func network(cluster *kkpv1.Cluster, options Options) ClusterNetwork {
	spec := cluster.Spec.ClusterNetwork
	data := ClusterNetwork{
		DNSDomain: spec.DNSDomain, DNSClusterIP: tenthAddress(spec.Services.CIDRBlocks),
		PodCIDRBlocks: slices.Clone(spec.Pods.CIDRBlocks), ServiceCIDRBlocks: slices.Clone(spec.Services.CIDRBlocks),
		ProxyMode:   spec.ProxyMode,
		PodCIDRIPv4: firstOf(spec.Pods.CIDRBlocks, netip.Addr.Is4), PodCIDRIPv6: firstOf(spec.Pods.CIDRBlocks, netip.Addr.Is6),
		IPAMAllocations: allocations(options.IPAMAllocations),
		NodePortRange:   cluster.Spec.ComponentsOverride.APIServer.NodePortRange,
	}
	data.DNSResolverIP = data.DNSClusterIP
	if spec.NodeLocalDNSCacheEnabled == nil || *spec.NodeLocalDNSCacheEnabled {
		data.DNSResolverIP = nodeLocalDNSAddress
	}
	if spec.IPVS != nil {
		data.StrictArp = pointed(spec.IPVS.StrictArp)
	}
	data.DualStack = data.PodCIDRIPv4 != "" && data.PodCIDRIPv6 != ""
	data.NodeCIDRMaskSizeIPv4 = mask(spec.NodeCIDRMaskSizeIPv4, defaultMaskIPv4)
	data.NodeCIDRMaskSizeIPv6 = mask(spec.NodeCIDRMaskSizeIPv6, defaultMaskIPv6)
	return data
}

// mask is the size of a node's part of the Pods' range, as in KKP even without ranges.
func mask(size *int32, fallback int32) int32 {
	if size != nil {
		return *size
	}
	return fallback
}

// allocations is never nil, as in KKP: nil and empty are different bytes in ConfigHash.
func allocations(given map[string]IPAMAllocation) map[string]IPAMAllocation {
	copied := make(map[string]IPAMAllocation, len(given))
	for name, allocation := range given {
		allocation.Addresses = slices.Clone(allocation.Addresses)
		copied[name] = allocation
	}
	return copied
}

func firstOf(blocks []string, family func(netip.Addr) bool) string {
	for _, block := range blocks {
		if prefix, err := netip.ParsePrefix(block); err == nil && family(prefix.Addr()) {
			return block
		}
	}
	return ""
}

// tenthAddress is the tenth address of the first range, which KKP uses for a cluster's DNS.
func tenthAddress(blocks []string) string {
	if len(blocks) == 0 {
		return ""
	}
	prefix, err := netip.ParsePrefix(blocks[0])
	if err != nil {
		return ""
	}
	addr := prefix.Masked().Addr()
	for range 10 {
		addr = addr.Next()
	}
	if !prefix.Contains(addr) {
		return ""
	}
	return addr.String()
}

func features(all map[string]bool) sets.Set[string] {
	on := sets.New[string]()
	for name, enabled := range all {
		if enabled {
			on.Insert(name)
		}
	}
	return on
}

func address(status kkpv1.ClusterAddress) ClusterAddress {
	return ClusterAddress{
		URL: status.URL, Port: status.Port, ExternalName: status.ExternalName, InternalName: status.InternalName,
		IP: status.IP, APIServerExternalAddress: status.APIServerExternalAddress,
	}
}

// csiMigration says whether in-tree volumes need migration, or had it.
func csiMigration(cluster *kkpv1.Cluster) bool {
	_, needed := cluster.Annotations[csiMigrationAnnotation]
	return needed || cluster.Status.Conditions[kkpv1.ClusterConditionCSIKubeletMigrationCompleted].Status == metav1.ConditionTrue
}

// annotations excludes those with whole objects or requests.
func annotations(cluster *kkpv1.Cluster) map[string]string {
	kept := maps.Clone(cluster.Annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool { return holdsObjects(key) })
	return kept
}

// holdsObjects says whether an annotation contains whole objects, or requests.
func holdsObjects(annotation string) bool {
	return annotation == lastAppliedAnnotation || annotation == initialInstallationsAnnotation || annotation == initialApplicationsAnnotation
}
