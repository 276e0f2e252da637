package fetch

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// SecretKey is a key of source Secrets.
type SecretKey struct {
	Name string
	// Public content is no secret, and may be used for any host.
	Public bool
	// Read sets a field from non-empty content. Of two keys for one field the later wins.
	Read func(into *Credentials, content []byte)
}

// LoginKeys are the keys of Kubernetes' own Secret types, and bearerToken as in Flux.
func LoginKeys() []SecretKey {
	token := func(into *Credentials, content []byte) { into.BearerToken = string(content) }
	return []SecretKey{
		{Name: "username", Read: func(into *Credentials, content []byte) { into.Username = string(content) }},
		{Name: "password", Read: func(into *Credentials, content []byte) { into.Password = string(content) }},
		{Name: "bearerToken", Read: token},
		{Name: "token", Read: token},
	}
}

// keyCA is read from the Secret for certificate authorities, not the one with credentials.
var keyCA = SecretKey{Name: "ca.crt", Public: true, Read: func(*Credentials, []byte) {}}

// SecretKeys are the keys of source Secrets that are distributed and read.
type SecretKeys []SecretKey

// Has reports whether a key is in the list.
func (k SecretKeys) Has(name string) bool {
	return slices.ContainsFunc(k, func(key SecretKey) bool { return key.Name == name })
}

// Names returns the names of the keys.
func (k SecretKeys) Names() []string {
	names := []string{}
	for _, key := range k {
		names = append(names, key.Name)
	}
	return names
}

func readSecret(secret *corev1.Secret, keys []SecretKey) Credentials {
	credentials := Credentials{Hosts: hosts(secret.Annotations[v1.AnnotationHosts])}
	for _, key := range keys {
		if content := secret.Data[key.Name]; len(content) > 0 {
			key.Read(&credentials, content)
		}
	}
	return credentials
}

func hosts(annotation string) []string {
	var listed []string
	for host := range strings.SplitSeq(annotation, ",") {
		if host = strings.TrimSpace(host); host != "" {
			listed = append(listed, host)
		}
	}
	return listed
}

// Public returns the credentials that are no secret.
func (c Credentials) Public() Credentials {
	return Credentials{CA: c.CA, KnownHosts: c.KnownHosts, Hosts: c.Hosts}
}

// IsSecret reports whether any of them is a secret.
func (c Credentials) IsSecret() bool {
	return c.Username != "" || c.Password != "" || c.BearerToken != "" || len(c.PrivateKey) > 0 || len(c.DockerConfig) > 0
}
