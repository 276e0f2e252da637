package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Hub is the seed's API server as agents reach it.
type Hub struct {
	// Server is its URL. Empty: no agent gets a credential.
	Server string
	// CA has the authorities of its certificate, in PEM. Empty: no agent gets a credential.
	CA []byte
}

// Keys of the agent's Secret.
const (
	// KeyKubeconfig names the other files by relative path: if the Secret is mounted, renewed files are read again.
	KeyKubeconfig = "kubeconfig"
	// KeyAuthority has the Hub's CA.
	KeyAuthority = "ca.crt"
	// KeyToken has the token; KeyCertificate and KeyPrivate have the parts of a certificate.
	KeyToken       = "token"
	KeyCertificate = "tls.crt"
	KeyPrivate     = "tls.key"
)

// hubName is the name of cluster, user and context in kubeconfigs.
const hubName = "hub"

// hub is the current Hub, or a Problem.
func (k *Keeper) hub() (Hub, error) {
	hub, err := k.options.Hub()
	switch {
	case err != nil:
		return Hub{}, passing(v1.ReasonHubUnknown, "the CA certificates of the seed's API server can't be read: %v", err)
	case hub.Server == "" || len(hub.CA) == 0:
		return Hub{}, &problemError{Problem: WithoutHub()}
	}
	return hub, nil
}

func (k *Keeper) knownHub() (hub Hub, isKnown bool) {
	hub, problem := k.hub()
	return hub, problem == nil
}

// kubeconfig is an agent's kubeconfig, in the namespace that its rights are for.
func (h Hub) kubeconfig(namespace string, kind v1.AccessType) ([]byte, error) {
	user := map[string]string{"tokenFile": KeyToken}
	if kind == v1.AccessByCertificate {
		user = map[string]string{"client-certificate": KeyCertificate, "client-key": KeyPrivate}
	}
	named := func(what string, fields map[string]string) []map[string]any {
		return []map[string]any{{"name": hubName, what: fields}}
	}
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": hubName,
		"clusters": named("cluster", map[string]string{"server": h.Server, "certificate-authority": KeyAuthority}),
		"users":    named("user", user),
		"contexts": named("context", map[string]string{"cluster": hubName, "user": hubName, "namespace": namespace}),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of an agent: %w", err)
	}
	return content, nil
}

// digest identifies the intended content of an agent's Secret, by the serial of the issue: it contains nothing of the
// credential. Without a hub it is the digest of a certificate for another signer.
func digest(serial string, hub Hub) string {
	sum := sha256.New()
	for _, part := range []string{serial, hub.Server, string(hub.CA)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
