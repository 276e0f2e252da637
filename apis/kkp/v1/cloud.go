package v1

// CloudSpec says where a cluster runs: at most one provider's part is set. The part names a Secret with the credentials. KKP still reads
// credentials that old clusters have in the part itself; these have precedence.
type CloudSpec struct {
	// dc is the name of the datacenter in the Seed.
	// +optional
	Datacenter string `json:"dc,omitempty"`
	// providerName is the provider, such as aws.
	// +optional
	ProviderName string `json:"providerName,omitempty"`
	// alibaba is Alibaba Cloud.
	// +optional
	Alibaba *AlibabaCloudSpec `json:"alibaba,omitempty"`
	// anexia is Anexia.
	// +optional
	Anexia *TokenCloudSpec `json:"anexia,omitempty"`
	// aws is Amazon.
	// +optional
	AWS *AWSCloudSpec `json:"aws,omitempty"`
	// azure is Microsoft.
	// +optional
	Azure *AzureCloudSpec `json:"azure,omitempty"`
	// baremetal is a provisioner of machines.
	// +optional
	Baremetal *BaremetalCloudSpec `json:"baremetal,omitempty"`
	// digitalocean is DigitalOcean.
	// +optional
	Digitalocean *TokenCloudSpec `json:"digitalocean,omitempty"`
	// gcp is Google.
	// +optional
	GCP *GCPCloudSpec `json:"gcp,omitempty"`
	// hetzner is Hetzner.
	// +optional
	Hetzner *TokenCloudSpec `json:"hetzner,omitempty"`
	// kubevirt is a cluster that runs machines.
	// +optional
	Kubevirt *KubevirtCloudSpec `json:"kubevirt,omitempty"`
	// nutanix is Nutanix.
	// +optional
	Nutanix *NutanixCloudSpec `json:"nutanix,omitempty"`
	// openstack is OpenStack.
	// +optional
	Openstack *OpenstackCloudSpec `json:"openstack,omitempty"`
	// vmwareclouddirector is VMware Cloud Director.
	// +optional
	VMwareCloudDirector *VMwareCloudDirectorCloudSpec `json:"vmwareclouddirector,omitempty"`
	// vsphere is vSphere.
	// +optional
	VSphere *VSphereCloudSpec `json:"vsphere,omitempty"`
}

// CredentialsReference names a Secret with a provider's credentials.
type CredentialsReference struct {
	// name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`
	// namespace of the Secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// TokenCloudSpec is a provider with one token.
type TokenCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// token, if it is not in a Secret.
	// +optional
	Token string `json:"token,omitempty"`
}

// AlibabaCloudSpec is Alibaba Cloud.
type AlibabaCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// accessKeyID, if it is not in a Secret.
	// +optional
	AccessKeyID string `json:"accessKeyID,omitempty"`
	// accessKeySecret, if it is not in a Secret.
	// +optional
	AccessKeySecret string `json:"accessKeySecret,omitempty"`
}

// AWSCloudSpec is Amazon.
type AWSCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// accessKeyID, if it is not in a Secret.
	// +optional
	AccessKeyID string `json:"accessKeyID,omitempty"`
	// secretAccessKey, if it is not in a Secret.
	// +optional
	SecretAccessKey string `json:"secretAccessKey,omitempty"`
	// assumeRoleARN is the role to assume.
	// +optional
	AssumeRoleARN string `json:"assumeRoleARN,omitempty"`
	// assumeRoleExternalID is the external ID of the role.
	// +optional
	AssumeRoleExternalID string `json:"assumeRoleExternalID,omitempty"`
}

// AzureCloudSpec is Microsoft.
type AzureCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// tenantID, if it is not in a Secret.
	// +optional
	TenantID string `json:"tenantID,omitempty"`
	// subscriptionID, if it is not in a Secret.
	// +optional
	SubscriptionID string `json:"subscriptionID,omitempty"`
	// clientID, if it is not in a Secret.
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// clientSecret, if it is not in a Secret.
	// +optional
	ClientSecret string `json:"clientSecret,omitempty"`
}

// BaremetalCloudSpec is a provisioner of machines.
type BaremetalCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// tinkerbell is the provisioner.
	// +optional
	Tinkerbell *TinkerbellCloudSpec `json:"tinkerbell,omitempty"`
}

// TinkerbellCloudSpec is the provisioner Tinkerbell.
type TinkerbellCloudSpec struct {
	// kubeconfig, if it is not in a Secret.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// GCPCloudSpec is Google.
type GCPCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// serviceAccount, if it is not in a Secret.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// KubevirtCloudSpec is a cluster that runs machines.
type KubevirtCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// kubeconfig, if it is not in a Secret.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// storageClasses of that cluster.
	// +optional
	StorageClasses []KubeVirtInfraStorageClass `json:"storageClasses,omitempty"`
	// volumeSnapshotClasses of that cluster.
	// +optional
	VolumeSnapshotClasses []KubeVirtInfraVolumeSnapshotClass `json:"volumeSnapshotClasses,omitempty"`
	// csiDriverOperator has options of the driver.
	// +optional
	CSIDriverOperator *KubeVirtCSIDriverOperator `json:"csiDriverOperator,omitempty"`
}

// KubeVirtInfraStorageClass is a storage class of the cluster that runs machines.
type KubeVirtInfraStorageClass struct {
	// name of the class.
	Name string `json:"name"`
	// isDefaultClass makes its copy the default one.
	// +optional
	IsDefaultClass *bool `json:"isDefaultClass,omitempty"`
	// volumeBindingMode of the copy.
	// +optional
	VolumeBindingMode *string `json:"volumeBindingMode,omitempty"`
	// labels of the class.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// zones where it is available.
	// +optional
	Zones []string `json:"zones,omitempty"`
	// regions where it is available.
	// +optional
	Regions []string `json:"regions,omitempty"`
	// volumeProvisioner says who creates the volumes.
	// +optional
	VolumeProvisioner string `json:"volumeProvisioner,omitempty"`
	// reclaimPolicy of the copy.
	// +optional
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`
	// allowVolumeExpansion of the copy.
	// +optional
	AllowVolumeExpansion bool `json:"allowVolumeExpansion,omitempty"`
}

// KubeVirtInfraVolumeSnapshotClass is a snapshot class of the cluster that runs machines.
type KubeVirtInfraVolumeSnapshotClass struct {
	// infraVolumeSnapshotClass is its name.
	InfraVolumeSnapshotClass string `json:"infraVolumeSnapshotClass"`
	// isDefaultClass makes its copy the default one.
	// +optional
	IsDefaultClass *bool `json:"isDefaultClass,omitempty"`
	// deletionPolicy of the copy.
	// +optional
	DeletionPolicy string `json:"deletionPolicy,omitempty"`
}

// KubeVirtCSIDriverOperator has options of the CSI driver.
type KubeVirtCSIDriverOperator struct {
	// overwriteRegistry is the registry of the driver's images.
	// +optional
	OverwriteRegistry string `json:"overwriteRegistry,omitempty"`
}

// NutanixCloudSpec is Nutanix.
type NutanixCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// proxyURL, if it is not in a Secret.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
	// username, if it is not in a Secret.
	// +optional
	Username string `json:"username,omitempty"`
	// password, if it is not in a Secret.
	// +optional
	Password string `json:"password,omitempty"`
	// csi has options of the CSI driver.
	// +optional
	CSI *NutanixCSIConfig `json:"csi,omitempty"`
}

// NutanixCSIConfig has options of the CSI driver.
type NutanixCSIConfig struct {
	// username, if it is not in a Secret.
	// +optional
	Username string `json:"username,omitempty"`
	// password, if it is not in a Secret.
	// +optional
	Password string `json:"password,omitempty"`
	// storageContainer of the volumes.
	// +optional
	StorageContainer string `json:"storageContainer,omitempty"`
	// fstype of the volumes.
	// +optional
	Fstype string `json:"fstype,omitempty"`
	// ssSegmentedIscsiNetwork as the driver understands it.
	// +optional
	SsSegmentedIscsiNetwork *bool `json:"ssSegmentedIscsiNetwork,omitempty"`
}

// OpenstackCloudSpec is OpenStack.
type OpenstackCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// username, if it is not in a Secret.
	// +optional
	Username string `json:"username,omitempty"`
	// password, if it is not in a Secret.
	// +optional
	Password string `json:"password,omitempty"`
	// project, if it is not in a Secret.
	// +optional
	Project string `json:"project,omitempty"`
	// projectID, if it is not in a Secret.
	// +optional
	ProjectID string `json:"projectID,omitempty"`
	// domain, if it is not in a Secret.
	// +optional
	Domain string `json:"domain,omitempty"`
	// applicationCredentialID, if it is not in a Secret.
	// +optional
	ApplicationCredentialID string `json:"applicationCredentialID,omitempty"`
	// applicationCredentialSecret, if it is not in a Secret.
	// +optional
	ApplicationCredentialSecret string `json:"applicationCredentialSecret,omitempty"`
	// cinderTopologyEnabled makes the CSI driver use zones.
	// +optional
	CinderTopologyEnabled bool `json:"cinderTopologyEnabled,omitempty"`
}

// VMwareCloudDirectorCloudSpec is VMware Cloud Director.
type VMwareCloudDirectorCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// username, if it is not in a Secret.
	// +optional
	Username string `json:"username,omitempty"`
	// password, if it is not in a Secret.
	// +optional
	Password string `json:"password,omitempty"`
	// apiToken, if it is not in a Secret.
	// +optional
	APIToken string `json:"apiToken,omitempty"`
	// organization, if it is not in a Secret.
	// +optional
	Organization string `json:"organization,omitempty"`
	// vdc, if it is not in a Secret.
	// +optional
	VDC string `json:"vdc,omitempty"`
	// csi has options of the CSI driver.
	// +optional
	CSI *VMwareCloudDirectorCSIConfig `json:"csi,omitempty"`
}

// VMwareCloudDirectorCSIConfig has options of the CSI driver.
type VMwareCloudDirectorCSIConfig struct {
	// storageProfile of the volumes.
	// +optional
	StorageProfile string `json:"storageProfile,omitempty"`
	// filesystem of the volumes.
	// +optional
	Filesystem string `json:"filesystem,omitempty"`
}

// VSphereCloudSpec is vSphere.
type VSphereCloudSpec struct {
	// credentialsReference names the Secret.
	// +optional
	CredentialsReference *CredentialsReference `json:"credentialsReference,omitempty"`
	// username, if it is not in a Secret.
	// +optional
	Username string `json:"username,omitempty"`
	// password, if it is not in a Secret.
	// +optional
	Password string `json:"password,omitempty"`
	// infraManagementUser is used if the others are empty.
	// +optional
	InfraManagementUser VSphereCredentials `json:"infraManagementUser,omitempty"`
	// storagePolicy of the volumes.
	// +optional
	StoragePolicy string `json:"storagePolicy,omitempty"`
}

// VSphereCredentials are a user of vSphere.
type VSphereCredentials struct {
	// username of the user.
	// +optional
	Username string `json:"username,omitempty"`
	// password of the user.
	// +optional
	Password string `json:"password,omitempty"`
}
