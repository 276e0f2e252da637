package query

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/certificate"
)

// CertificateSecret is the default Secret of the endpoint's certificate, in the platform namespace.
// Clients trust its ca.crt. Endpoints with different host names need a Secret each.
const CertificateSecret = "trellis-query-tls"

// NewCertificate maintains a certificate for host names and addresses in a Secret, which all
// replicas share. Its authority lasts, as clients have copies of it. An existing Secret without our
// label is served and not written.
func NewCertificate(secret client.ObjectKey, hosts []string) *certificate.Rotator {
	return certificate.New(certificate.Options{
		Name: "trellis-query", Secret: secret, Owner: "query-endpoint", Hosts: hosts, LastingAuthority: true,
	})
}
