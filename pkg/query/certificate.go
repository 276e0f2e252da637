package query

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/certificate"
)

// CertificateSecret is the usual name of the Secret in the platform namespace with the endpoint's certificate. Whoever asks
// trusts its ca.crt. Two endpoints with different host names need a Secret each.
const CertificateSecret = "trellis-query-tls"

// NewCertificate keeps a certificate for host names and addresses in a Secret, so that all replicas serve the same one and a
// restart changes nothing. Its authority lasts, since whoever asks keeps a copy. A Secret of that name made by somebody else
// is served as it is.
func NewCertificate(secret client.ObjectKey, hosts []string) *certificate.Keeper {
	return certificate.New(certificate.Options{
		Name: "trellis-query", Secret: secret, Owner: "query-endpoint", Hosts: hosts, LastingAuthority: true,
	})
}
