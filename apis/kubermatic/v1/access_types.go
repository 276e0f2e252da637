package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AccessType is the kind of a credential.
//
// +kubebuilder:validation:Enum=Token;Certificate
type AccessType string

const (
	// AccessByToken is a token of a ServiceAccount in the cluster namespace.
	AccessByToken AccessType = "Token"
	// AccessByCertificate is a client certificate, from a CertificateSigningRequest.
	AccessByCertificate AccessType = "Certificate"
)

// AccessApproval says who approves a request for a certificate.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type AccessApproval string

const (
	// ApprovalAutomatic lets the manager approve it, if the platform allows that for the signer.
	ApprovalAutomatic AccessApproval = "Automatic"
	// ApprovalManual waits for an admin's approval.
	ApprovalManual AccessApproval = "Manual"
)

// SignerAPIServer is the signer whose certificates are for the API server, and the default.
const SignerAPIServer = "kubernetes.io/kube-apiserver-client"

// Access is a credential for the hub, which is the seed's API server, with rights in the cluster namespace. The user cluster gets it as a
// Secret of the target namespace, named <installation>-<name> or secretName.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'Certificate' || !has(self.signerName) && !has(self.approval)",message="signerName and approval need type Certificate"
// +kubebuilder:validation:XValidation:rule="!has(self.signerName) || self.signerName == 'kubernetes.io/kube-apiserver-client' || !has(self.rules) && !(has(self.outbox) && self.outbox)",message="rules and outbox need the API server's own signer"
// +kubebuilder:validation:XValidation:rule="!has(self.subject) || has(self.signerName) && self.signerName != 'kubernetes.io/kube-apiserver-client'",message="subject needs a signerName other than the API server's own"
type Access struct {
	// name of the credential, unique in the version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// type is Token or Certificate. Absent: Token.
	// +optional
	Type AccessType `json:"type,omitempty"`
	// lifetime is the requested lifetime, from 1h to 720h. The credential is renewed at 80 to 85 % of the granted lifetime. Absent: 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('720h')",message="lifetime must be between 1h and 720h"
	Lifetime *metav1.Duration `json:"lifetime,omitempty"`
	// rules are the only rights of the credential, in the cluster namespace on the seed. They must not exceed the product's limits and the
	// rights that the platform lists for agents.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Rules []AccessRule `json:"rules,omitempty"`
	// signerName of the request, with type Certificate. Absent: kubernetes.io/kube-apiserver-client. A request to another signer has no rules
	// and gets no kubeconfig.
	// +optional
	// +kubebuilder:validation:MaxLength=571
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?)?$`
	SignerName string `json:"signerName,omitempty"`
	// approval is Automatic or Manual. With type Certificate, it defines whether Trellis or an admin approves the request. Absent: Automatic.
	// +optional
	Approval AccessApproval `json:"approval,omitempty"`
	// subject of the certificate, for another signer than the API server's own. Absent: a user and groups that Trellis derives from the
	// add-on and the cluster.
	// +optional
	Subject *AccessSubject `json:"subject,omitempty"`
	// secretName is the name of the Secret of the target namespace. In it, $(installation) is replaced by the name of the installation.
	// Absent: $(installation)-<name>.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=150
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]|\$\(installation\))+$`
	SecretName string `json:"secretName,omitempty"`
	// outbox creates the empty Secret addon-out-<installation> in the cluster namespace. The agent may read and write this Secret.
	// +optional
	Outbox bool `json:"outbox,omitempty"`
}

// AccessSubject is the subject of a certificate. In its texts, $(addon), $(cluster) and $(namespace) are replaced by the name of the
// add-on, and by the name and the namespace of the Cluster. No text begins with "system:". In add-ons of Custom catalogues, each text
// begins with "$(addon):".
type AccessSubject struct {
	// user is the common name of the certificate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	User string `json:"user,omitempty"`
	// groups are the organizations of the certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
}

// AccessRule is a rule of a Role, with the same names of resources and verbs. In resourceNames, $(installation) is replaced by the name
// of the installation.
type AccessRule struct {
	// apiGroups of the resources; "" is the core group.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	APIGroups []string `json:"apiGroups,omitempty"`
	// resources in the plural, also with a subresource, such as policies/status.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Resources []string `json:"resources,omitempty"`
	// resourceNames limit the rule to objects of these names. Absent: all objects of the namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	ResourceNames []string `json:"resourceNames,omitempty"`
	// verbs among get, list, watch, create, update, patch and delete.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=16
	Verbs []string `json:"verbs,omitempty"`
}

// AccessState is the state of a credential.
type AccessState struct {
	// name of the credential, in the version.
	// +required
	Name string `json:"name,omitempty"`
	// secret is the Secret of the target namespace that contains the credential.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`
	// subject is the agent's user name: at the hub, or in the certificate of another signer.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Subject string `json:"subject,omitempty"`
	// groups of the certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=1024
	Groups []string `json:"groups,omitempty"`
	// signerName is the signer of the certificate.
	// +optional
	// +kubebuilder:validation:MaxLength=571
	SignerName string `json:"signerName,omitempty"`
	// expires is when the credential expires, unless it is renewed.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// request is the CertificateSigningRequest that Trellis waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Request string `json:"request,omitempty"`
}
