package templatedata

import (
	"maps"
	"slices"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// providerName is KKP's name of the provider, or the provider whose part the Cluster has.
func providerName(cloud kkpv1.CloudSpec) string {
	if cloud.ProviderName != "" {
		return cloud.ProviderName
	}
	for _, provider := range []struct {
		name string
		set  bool
	}{
		{"alibaba", cloud.Alibaba != nil}, {"anexia", cloud.Anexia != nil}, {"aws", cloud.AWS != nil}, {"azure", cloud.Azure != nil},
		{"baremetal", cloud.Baremetal != nil}, {"digitalocean", cloud.Digitalocean != nil}, {"gcp", cloud.GCP != nil},
		{"hetzner", cloud.Hetzner != nil}, {"kubevirt", cloud.Kubevirt != nil}, {"nutanix", cloud.Nutanix != nil},
		{"openstack", cloud.Openstack != nil}, {"vmwareclouddirector", cloud.VMwareCloudDirector != nil}, {"vsphere", cloud.VSphere != nil},
	} {
		if provider.set {
			return provider.name
		}
	}
	return ""
}

func csiOptions(cloud kkpv1.CloudSpec) CSIOptions {
	var options CSIOptions
	if cloud.VSphere != nil {
		options.StoragePolicy = cloud.VSphere.StoragePolicy
	}
	if cloud.Nutanix != nil && cloud.Nutanix.CSI != nil {
		csi := cloud.Nutanix.CSI
		options.StorageContainer, options.Fstype = csi.StorageContainer, csi.Fstype
		options.SsSegmentedIscsiNetwork = pointed(csi.SsSegmentedIscsiNetwork)
	}
	if cloud.VMwareCloudDirector != nil && cloud.VMwareCloudDirector.CSI != nil {
		csi := cloud.VMwareCloudDirector.CSI
		options.StorageProfile, options.Filesystem = csi.StorageProfile, csi.Filesystem
	}
	if cloud.Openstack != nil {
		options.CinderTopologyEnabled = cloud.Openstack.CinderTopologyEnabled
	}
	if cloud.Kubevirt != nil && cloud.Kubevirt.CSIDriverOperator != nil {
		options.OverwriteRegistry = cloud.Kubevirt.CSIDriverOperator.OverwriteRegistry
	}
	return options
}

func storageClasses(kubevirt *kkpv1.KubevirtCloudSpec) []KubeVirtInfraStorageClass {
	if kubevirt == nil {
		return nil
	}
	var classes []KubeVirtInfraStorageClass
	for _, class := range kubevirt.StorageClasses {
		classes = append(classes, KubeVirtInfraStorageClass{
			Name: class.Name, IsDefaultClass: pointed(class.IsDefaultClass), VolumeBindingMode: pointed(class.VolumeBindingMode),
			Labels: maps.Clone(class.Labels), Zones: slices.Clone(class.Zones), Regions: slices.Clone(class.Regions),
			VolumeProvisioner: class.VolumeProvisioner, ReclaimPolicy: class.ReclaimPolicy,
			AllowVolumeExpansion: class.AllowVolumeExpansion,
		})
	}
	return classes
}

func snapshotClasses(kubevirt *kkpv1.KubevirtCloudSpec) []KubeVirtInfraVolumeSnapshotClass {
	if kubevirt == nil {
		return nil
	}
	var classes []KubeVirtInfraVolumeSnapshotClass
	for _, class := range kubevirt.VolumeSnapshotClasses {
		classes = append(classes, KubeVirtInfraVolumeSnapshotClass{
			InfraVolumeSnapshotClass: class.InfraVolumeSnapshotClass, IsDefaultClass: pointed(class.IsDefaultClass),
			DeletionPolicy: class.DeletionPolicy,
		})
	}
	return classes
}

// pointed is a copy, so that nothing is shared with the Cluster.
func pointed[T any](value *T) *T {
	if value == nil {
		return nil
	}
	copied := *value
	return &copied
}
