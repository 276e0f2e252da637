package rights

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// AgentPrefix begins the names of accounts, roles and bindings of agents.
	AgentPrefix  = "addon-agent-"
	outboxPrefix = "addon-out-"
	// userPrefix begins users and groups of certificates.
	userPrefix = "system:addon"
	// keyBytes is how many bytes of a public key's digest name its request.
	keyBytes = 8
)

// StoredPrefix begins the names of Secrets on the seed that store credentials, and of requests for certificates.
const StoredPrefix = "addon-access-"

// AgentName is the name of the ServiceAccount, Role and RoleBinding of an access. Two pairs can have the same name ("a" with "b-c", "a-b"
// with "c"): label and owner identify the owner, and the second is refused (ADR 121).
func AgentName(installation, access string) string { return AgentPrefix + installation + "-" + access }

// StoredName is the name of the Secret on the seed that stores a credential. ID is the installation's owner ID.
func StoredName(id, access string) string { return StoredPrefix + id + "-" + access }

// SecretName is the name of the Secret with the credential in the user cluster.
func SecretName(installation string, access v1.Access) string {
	if access.SecretName == "" {
		return DefaultSecretName(installation, access.Name)
	}
	return NamedSecret(installation, access.SecretName)
}

// DefaultSecretName is its name if a version names none.
func DefaultSecretName(installation, access string) string { return installation + "-" + access }

// NamedSecret is its name if a version names it.
func NamedSecret(installation, secretName string) string {
	return fill(secretName, installation)
}

// OutboxName is the name of the Secret in the cluster namespace that an agent may write.
func OutboxName(installation string) string { return outboxPrefix + installation }

// RequestName is the name of the CertificateSigningRequest for a public key, which is in DER (PKIX).
func RequestName(id string, publicKeyDER []byte) string {
	sum := sha256.Sum256(publicKeyDER)
	return StoredPrefix + id + "-" + hex.EncodeToString(sum[:keyBytes])
}

// CertificateUser is the user in a certificate, one for each nonce. No part has a colon, so two users never share a
// name.
func CertificateUser(namespace, cluster, addon, nonce string) string {
	return strings.Join([]string{userPrefix, namespace, cluster, addon, nonce}, ":")
}

// CertificateGroups are the groups in a certificate: the add-on on this cluster, and the add-on. Trellis binds no
// role to them: they outlive a nonce.
func CertificateGroups(namespace, cluster, addon string) []string {
	return []string{strings.Join([]string{userPrefix, namespace, cluster, addon}, ":"), userPrefix + ":" + addon}
}

// RenewAt is when a credential is renewed: after 80 to 85 % of the granted life. The name spreads renewals, so that
// credentials issued together are not renewed together. Without a life it is at once.
func RenewAt(name string, issued, expires time.Time) time.Time {
	life := expires.Sub(issued)
	if life <= 0 {
		return issued
	}
	sum := sha256.Sum256([]byte(name))
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return issued.Add(life/5*4 + time.Duration(float64(life/20)*share))
}
