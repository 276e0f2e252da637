package catalogue

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Digest is "sha256:<hex>" over the canonical JSON of a value: keys sorted, no space, numbers as written. Two spellings
// of the same content have one digest. Errors: the value is no JSON.
func Digest(value any) (string, error) {
	canonical, err := canonicalJSON(value)
	if err != nil {
		return "", fmt.Errorf("taking the digest: %w", err)
	}
	return digestOf(canonical), nil
}

// measure gives the digest of a version, of all that an installation of it depends on, and its size as JSON, in bytes.
func measure(version *v1.AddonVersion) (digest string, size int, err error) {
	canonical, err := canonicalJSON(version)
	if err != nil {
		return "", 0, fmt.Errorf("version %q: %w", version.Version, err)
	}
	return digestOf(canonical), len(canonical), nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func canonicalJSON(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}
