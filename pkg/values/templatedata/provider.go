package templatedata

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// credentialReader reads credentials from the Cluster, as in old clusters, or else from the Secret. Keys, fallbacks
// and optional keys are KKP's (pkg/resources/credentials.go there).
type credentialReader struct {
	secret types.NamespacedName
	named  bool
	data   map[string][]byte
	// missing is the first required key that was not found.
	missing *MissingCredentialError
}

// need reads a key that is required if the Cluster names a Secret.
func (r *credentialReader) need(inline, key string) string {
	if inline != "" || !r.named {
		return inline
	}
	value, found := r.data[key]
	if !found && r.missing == nil {
		r.missing = &MissingCredentialError{Secret: r.secret, Key: key}
	}
	return string(value)
}

// optional reads keys that may be absent; the first one with a value counts.
func (r *credentialReader) optional(inline string, keys ...string) string {
	for _, key := range keys {
		inline = cmp.Or(inline, string(r.data[key]))
	}
	return inline
}

// credentials of the one provider that is set.
func (r *credentialReader) credentials(cloud kkpv1.CloudSpec) Credentials {
	var found Credentials
	if p := cloud.Alibaba; p != nil {
		found.Alibaba = AlibabaCredentials{r.need(p.AccessKeyID, "accessKeyId"), r.need(p.AccessKeySecret, "accessKeySecret")}
	}
	if p := cloud.Anexia; p != nil {
		found.Anexia.Token = r.need(p.Token, "token")
	}
	if p := cloud.AWS; p != nil {
		found.AWS = AWSCredentials{
			AccessKeyID: r.need(p.AccessKeyID, "accessKeyId"), SecretAccessKey: r.need(p.SecretAccessKey, "secretAccessKey"),
			AssumeRoleARN: p.AssumeRoleARN, AssumeRoleExternalID: p.AssumeRoleExternalID,
		}
	}
	if p := cloud.Azure; p != nil {
		found.Azure = AzureCredentials{
			TenantID: r.need(p.TenantID, "tenantID"), SubscriptionID: r.need(p.SubscriptionID, "subscriptionID"),
			ClientID: r.need(p.ClientID, "clientID"), ClientSecret: r.need(p.ClientSecret, "clientSecret"),
		}
	}
	if p := cloud.Baremetal; p != nil {
		found.Baremetal.Tinkerbell.Kubeconfig = r.tinkerbell(p)
	}
	if p := cloud.Digitalocean; p != nil {
		found.Digitalocean.Token = r.need(p.Token, "token")
	}
	if p := cloud.GCP; p != nil {
		found.GCP.ServiceAccount = r.need(p.ServiceAccount, "serviceAccount")
	}
	if p := cloud.Hetzner; p != nil {
		found.Hetzner.Token = r.need(p.Token, "token")
	}
	if p := cloud.Kubevirt; p != nil {
		found.Kubevirt.KubeConfig = r.need(p.Kubeconfig, "kubeConfig")
	}
	if p := cloud.Nutanix; p != nil {
		found.Nutanix = r.nutanix(p)
	}
	if p := cloud.Openstack; p != nil {
		found.Openstack = r.openstack(p)
	}
	if p := cloud.VMwareCloudDirector; p != nil {
		found.VMwareCloudDirector = r.cloudDirector(p)
	}
	if p := cloud.VSphere; p != nil {
		found.VSphere = r.vsphere(p)
	}
	return found
}

func (r *credentialReader) tinkerbell(p *kkpv1.BaremetalCloudSpec) string {
	inline := ""
	if p.Tinkerbell != nil {
		inline = p.Tinkerbell.Kubeconfig
	}
	return r.need(inline, "kubeConfig")
}

func (r *credentialReader) nutanix(p *kkpv1.NutanixCloudSpec) NutanixCredentials {
	found := NutanixCredentials{
		Username: r.need(p.Username, "username"), Password: r.need(p.Password, "password"), ProxyURL: r.optional(p.ProxyURL, "proxyURL"),
	}
	if p.CSI != nil {
		found.CSIUsername, found.CSIPassword = r.need(p.CSI.Username, "csiUsername"), r.need(p.CSI.Password, "csiPassword")
	}
	return found
}

// openstack has either an application's credentials or a user's.
func (r *credentialReader) openstack(p *kkpv1.OpenstackCloudSpec) OpenstackCredentials {
	found := OpenstackCredentials{Domain: r.need(p.Domain, "domain")}
	if p.ApplicationCredentialID != "" {
		found.ApplicationCredentialID, found.ApplicationCredentialSecret = p.ApplicationCredentialID, p.ApplicationCredentialSecret
		return found
	}
	if found.ApplicationCredentialID = r.optional("", "applicationCredentialID"); found.ApplicationCredentialID != "" {
		found.ApplicationCredentialSecret = r.need("", "applicationCredentialSecret")
		return found
	}
	found.Username, found.Password = r.need(p.Username, "username"), r.need(p.Password, "password")
	found.Project, found.ProjectID = r.optional(p.Project, "project", "tenant"), r.optional(p.ProjectID, "projectID", "tenantID")
	return found
}

// cloudDirector has either a token or a user.
func (r *credentialReader) cloudDirector(p *kkpv1.VMwareCloudDirectorCloudSpec) VMwareCloudDirectorCredentials {
	found := VMwareCloudDirectorCredentials{
		Organization: r.need(p.Organization, "organization"), VDC: r.need(p.VDC, "vdc"), APIToken: r.optional(p.APIToken, "apiToken"),
	}
	if found.APIToken == "" {
		found.Username, found.Password = r.need(p.Username, "username"), r.need(p.Password, "password")
	}
	return found
}

// vsphere has a user, or only the one that manages the infrastructure.
func (r *credentialReader) vsphere(p *kkpv1.VSphereCloudSpec) VSphereCredentials {
	manager := p.InfraManagementUser
	return VSphereCredentials{
		Username: cmp.Or(r.optional(p.Username, "username"), r.optional(manager.Username, "infraManagementUserUsername")),
		Password: cmp.Or(r.optional(p.Password, "password"), r.optional(manager.Password, "infraManagementUserPassword")),
	}
}
