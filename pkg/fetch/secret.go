package fetch

import "strings"

// Keys of source Secrets: those of Kubernetes' own Secret types, and identity and bearerToken as Flux calls them.
const (
	KeyUsername     = "username"
	KeyPassword     = "password"
	KeyToken        = "token"
	KeyBearerToken  = "bearerToken"
	KeyPrivateKey   = "ssh-privatekey"
	KeyIdentity     = "identity"
	KeyKnownHosts   = "known_hosts"
	KeyDockerConfig = ".dockerconfigjson"
	KeyCA           = "ca.crt"
)

// SecretCredentials reads the data of a source Secret, whose annotation names the hosts. What the Secret does not have is
// empty. A certificate authority comes from another Secret, and is not read here.
func SecretCredentials(data map[string][]byte, hosts []string) Credentials {
	return Credentials{
		Username: string(data[KeyUsername]), Password: string(data[KeyPassword]),
		BearerToken:  string(firstOf(data, KeyToken, KeyBearerToken)),
		PrivateKey:   firstOf(data, KeyPrivateKey, KeyIdentity),
		KnownHosts:   data[KeyKnownHosts],
		DockerConfig: data[KeyDockerConfig],
		Hosts:        hosts,
	}
}

// IsSourceKey says whether sources read a key of a Secret.
func IsSourceKey(key string) bool {
	switch key {
	case KeyUsername, KeyPassword, KeyToken, KeyBearerToken, KeyPrivateKey, KeyIdentity, KeyKnownHosts, KeyDockerConfig, KeyCA:
		return true
	}
	return false
}

// Hosts reads the annotation of a source Secret that names the hosts which may get its credentials: a comma list.
func Hosts(annotation string) []string {
	var hosts []string
	for host := range strings.SplitSeq(annotation, ",") {
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func firstOf(data map[string][]byte, keys ...string) []byte {
	for _, key := range keys {
		if len(data[key]) > 0 {
			return data[key]
		}
	}
	return nil
}

// Public are the credentials without what has to stay secret.
func (c Credentials) Public() Credentials {
	return Credentials{CA: c.CA, KnownHosts: c.KnownHosts, Hosts: c.Hosts}
}

// IsSecret says whether there is anything in them that has to stay secret.
func (c Credentials) IsSecret() bool {
	return c.Username != "" || c.Password != "" || c.BearerToken != "" || len(c.PrivateKey) > 0 || len(c.DockerConfig) > 0
}
