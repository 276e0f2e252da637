package templatedata

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Canonical is the data as JSON, equal for equal data, with secrets: for keyed hashes only. Of Platform it has only
// the platform's list: without a list it is the same as before lists existed, and registries of the flag are in the
// hash as the rules for images. Without a credential for the hub, it has no BuiltIn.
func Canonical(data Data) ([]byte, error) {
	data.Platform = data.listed
	if data.BuiltIn != nil && data.HubKubeConfigSecret == "" {
		data.BuiltIn = nil
	}
	return asJSON(data)
}

func asJSON(data Data) ([]byte, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encoding the template data of cluster %q: %w", data.Cluster.Name, err)
	}
	return encoded, nil
}

// Map is the data in the form for charts, below .Values: the same names without the secrets, the version as text, the features as keys.
func Map(data Data) (map[string]any, error) {
	content, err := mapOf(data)
	for _, secret := range [][]string{{"Credentials"}, {"Cluster", "Kubeconfig"}, {"Cluster", "Address", "AdminToken"}} {
		unstructured.RemoveNestedField(content, secret...)
	}
	return content, err
}

func mapOf(data Data) (map[string]any, error) {
	encoded, err := asJSON(data)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(encoded, &content); err != nil {
		return nil, fmt.Errorf("decoding the template data of cluster %q: %w", data.Cluster.Name, err)
	}
	return content, nil
}

// ConfigHash is a hash of the network's settings, for annotations that restart pods on a change. It is the
// hexadecimal SHA-1 over the fields as JSON with sorted ranges, as in KKP, so that a migration to Trellis restarts
// nothing; it protects nothing.
func (n ClusterNetwork) ConfigHash() string {
	n.PodCIDRBlocks, n.ServiceCIDRBlocks = sorted(n.PodCIDRBlocks), sorted(n.ServiceCIDRBlocks)
	encoded, err := json.Marshal(n)
	if err != nil {
		return ""
	}
	sum := sha1.Sum(encoded)
	return hex.EncodeToString(sum[:])
}

// sorted keeps an empty list: nil and empty are different bytes.
func sorted(blocks []string) []string {
	if len(blocks) == 0 {
		return blocks
	}
	return slices.Sorted(slices.Values(blocks))
}

func cloneVariables(variables map[string]any) map[string]any {
	if variables == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(variables)
}
