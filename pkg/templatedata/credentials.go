package templatedata

// Credentials are those of the cluster's cloud provider. All of it is secret, and all of it is empty except for versions
// of Core catalogues that ask for it.
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

// TokenCredentials are one token.
type TokenCredentials struct{ Token string }

// AWSCredentials are those of AWS.
type AWSCredentials struct {
	AccessKeyID, SecretAccessKey        string
	AssumeRoleARN, AssumeRoleExternalID string
}

// AzureCredentials are those of Azure.
type AzureCredentials struct{ TenantID, SubscriptionID, ClientID, ClientSecret string }

// BaremetalCredentials are those of a bare-metal provisioner.
type BaremetalCredentials struct{ Tinkerbell TinkerbellCredentials }

// TinkerbellCredentials are those of Tinkerbell.
type TinkerbellCredentials struct{ Kubeconfig string }

// GCPCredentials are those of Google Cloud.
type GCPCredentials struct{ ServiceAccount string }

// OpenstackCredentials are those of OpenStack.
type OpenstackCredentials struct {
	Username, Password, Project, ProjectID, Domain       string
	ApplicationCredentialID, ApplicationCredentialSecret string
	Token                                                string
}

// KubevirtCredentials are those of KubeVirt.
type KubevirtCredentials struct{ KubeConfig string }

// VSphereCredentials are those of vSphere.
type VSphereCredentials struct{ Username, Password string }

// AlibabaCredentials are those of Alibaba Cloud.
type AlibabaCredentials struct{ AccessKeyID, AccessKeySecret string }

// NutanixCredentials are those of Nutanix.
type NutanixCredentials struct{ Username, Password, CSIUsername, CSIPassword, ProxyURL string }

// VMwareCloudDirectorCredentials are those of VMware Cloud Director.
type VMwareCloudDirectorCredentials struct{ Username, Password, APIToken, Organization, VDC string }
