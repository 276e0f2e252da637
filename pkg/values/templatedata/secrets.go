package templatedata

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// Charts find the secrets as an object that no cluster has: lookup SecretsAPIVersion SecretsKind "" SecretsName.
const (
	// SecretsAPIVersion is the apiVersion with which charts look up the secrets of their cluster. No cluster serves it.
	SecretsAPIVersion = "addons.kubermatic.k8c.io/v1"
	SecretsKind       = "ClusterSecrets"
	SecretsName       = "cluster"
)

// SecretObject is the object that charts look up, with the names of Data; nil if the data have no secret.
func SecretObject(data Data) (*unstructured.Unstructured, error) {
	if data.Credentials == (Credentials{}) && data.Cluster.Kubeconfig == "" && data.Cluster.Address.AdminToken == "" {
		return nil, nil
	}
	content, err := mapOf(data)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": SecretsAPIVersion, "kind": SecretsKind, "metadata": map[string]any{"name": SecretsName},
		"Credentials": content["Credentials"], "Kubeconfig": data.Cluster.Kubeconfig, "AdminToken": data.Cluster.Address.AdminToken,
	}}, nil
}

// Secrets are for versions of Core catalogues that request them.
type Secrets struct {
	// Kubeconfig of a cluster-admin, from the cluster namespace.
	Kubeconfig string
	// Credentials is the data of the Secret that CredentialsSecret names; nil without one.
	Credentials map[string][]byte
}

// MissingCredentialError says that a provider's Secret lacks a key.
type MissingCredentialError struct {
	Secret types.NamespacedName
	Key    string
}

func (e *MissingCredentialError) Error() string {
	return fmt.Sprintf("Secret %q, which the Cluster names for its provider's credentials, has no key %q", e.Secret, e.Key)
}

// CredentialsSecret is the Secret with a Cluster's credentials for its provider, if any.
func CredentialsSecret(cluster *kkpv1.Cluster) (types.NamespacedName, bool) {
	for _, reference := range references(cluster.Spec.Cloud) {
		if reference != nil && reference.Name != "" && reference.Namespace != "" {
			return types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}, true
		}
	}
	return types.NamespacedName{}, false
}

// references of all providers; one at most is set.
func references(cloud kkpv1.CloudSpec) []*kkpv1.CredentialsReference {
	return []*kkpv1.CredentialsReference{
		reference(cloud.Alibaba, func(p *kkpv1.AlibabaCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Anexia, tokenReference), reference(cloud.Digitalocean, tokenReference), reference(cloud.Hetzner, tokenReference),
		reference(cloud.AWS, func(p *kkpv1.AWSCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Azure, func(p *kkpv1.AzureCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Baremetal, func(p *kkpv1.BaremetalCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.GCP, func(p *kkpv1.GCPCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Kubevirt, func(p *kkpv1.KubevirtCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Nutanix, func(p *kkpv1.NutanixCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.Openstack, func(p *kkpv1.OpenstackCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.VMwareCloudDirector,
			func(p *kkpv1.VMwareCloudDirectorCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
		reference(cloud.VSphere, func(p *kkpv1.VSphereCloudSpec) *kkpv1.CredentialsReference { return p.CredentialsReference }),
	}
}

func tokenReference(p *kkpv1.TokenCloudSpec) *kkpv1.CredentialsReference {
	return p.CredentialsReference
}

func reference[P any](part *P, of func(*P) *kkpv1.CredentialsReference) *kkpv1.CredentialsReference {
	if part == nil {
		return nil
	}
	return of(part)
}

// WithSecrets is the data with the three secret fields. The error is a *MissingCredentialError, for the keys that KKP
// needs too: an empty password would be written into the user cluster. A Cluster that names no Secret needs none.
func WithSecrets(data Data, cluster *kkpv1.Cluster, secrets Secrets) (Data, error) {
	data.Cluster.Kubeconfig = secrets.Kubeconfig
	data.Cluster.Address.AdminToken = cluster.Status.Address.AdminToken
	reader := credentialReader{data: secrets.Credentials}
	reader.secret, reader.named = CredentialsSecret(cluster)
	data.Credentials = reader.credentials(cluster.Spec.Cloud)
	if reader.missing != nil {
		return Data{}, reader.missing
	}
	return data, nil
}

// SecretsOf are the secrets in the data of a template, as maps, lists and texts.
func SecretsOf(data Data) (secrets any) {
	encoded, err := json.Marshal([]any{data.Credentials, data.Cluster.Kubeconfig, data.Cluster.Address.AdminToken})
	if err != nil || json.Unmarshal(encoded, &secrets) != nil {
		return nil
	}
	return secrets
}
