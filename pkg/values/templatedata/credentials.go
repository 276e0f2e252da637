package templatedata

// Credentials are the cloud provider's: secret, and empty unless a Core catalogue requests them.
type Credentials struct {
	AWS                 AWSCredentials
	Azure               AzureCredentials
	Baremetal           BaremetalCredentials
	Digitalocean        TokenCredentials
	GCP                 GCPCredentials
	Hetzner             TokenCredentials
	Openstack           OpenstackCredentials
	Kubevirt            KubevirtCredentials
	VSphere             VSphereCredentials
	Alibaba             AlibabaCredentials
	Anexia              TokenCredentials
	Nutanix             NutanixCredentials
	VMwareCloudDirector VMwareCloudDirectorCredentials
}

type (
	// TokenCredentials are one token.
	TokenCredentials struct{ Token string }
	// AWSCredentials are those of AWS.
	AWSCredentials struct {
		AccessKeyID, SecretAccessKey        string
		AssumeRoleARN, AssumeRoleExternalID string
	}
	// AzureCredentials are those of Azure.
	AzureCredentials struct{ TenantID, SubscriptionID, ClientID, ClientSecret string }
	// BaremetalCredentials are those of a bare-metal provisioner.
	BaremetalCredentials struct{ Tinkerbell TinkerbellCredentials }
	// TinkerbellCredentials are those of Tinkerbell.
	TinkerbellCredentials struct{ Kubeconfig string }
	// GCPCredentials are those of Google Cloud.
	GCPCredentials struct{ ServiceAccount string }
	// OpenstackCredentials are those of OpenStack.
	OpenstackCredentials struct {
		Username, Password, Project, ProjectID, Domain       string
		ApplicationCredentialID, ApplicationCredentialSecret string
		Token                                                string
	}
	// KubevirtCredentials are those of KubeVirt.
	KubevirtCredentials struct{ KubeConfig string }
	// VSphereCredentials are those of vSphere.
	VSphereCredentials struct{ Username, Password string }
	// AlibabaCredentials are those of Alibaba Cloud.
	AlibabaCredentials struct{ AccessKeyID, AccessKeySecret string }
	// NutanixCredentials are those of Nutanix.
	NutanixCredentials struct{ Username, Password, CSIUsername, CSIPassword, ProxyURL string }
	// VMwareCloudDirectorCredentials are those of VMware Cloud Director.
	VMwareCloudDirectorCredentials struct{ Username, Password, APIToken, Organization, VDC string }
)
