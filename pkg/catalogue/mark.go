package catalogue

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// MarkKeySize is the size of a seed's key for marks, in bytes.
const MarkKeySize = 32

// MarkKeyID identifies a key and reveals nothing about it.
func MarkKeyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("addons.kubermatic.k8c.io/mark-key/"), key...))
	return hex.EncodeToString(sum[:6])
}

// Mark is the value of annotation v1.AnnotationMark, which proves that the writer of a merged
// object had the seed's key: the key's ID and an HMAC-SHA256 over namespace, name, content digest
// (MergedAddon.Digest, ContentDigest) and annotations, each with its length.
func Mark(key []byte, merged *v1.AddonCatalogue, content string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range append([]string{merged.Namespace, merged.Name, content}, markedAnnotations(merged)...) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return MarkKeyID(key) + ":" + hex.EncodeToString(mac.Sum(nil))
}

// markedAnnotations are the annotations of a merged object that readers use, in a fixed order.
func markedAnnotations(merged *v1.AddonCatalogue) []string {
	return []string{
		merged.Annotations[v1.AnnotationDigest], merged.Annotations[v1.AnnotationKKPVersion],
		merged.Annotations[v1.AnnotationVersions], merged.Annotations[v1.AnnotationLeftVersions],
	}
}

// IsMarked reports whether a merged object is marked with a key and has the marked content.
func IsMarked(key []byte, merged *v1.AddonCatalogue) bool {
	mark := merged.Annotations[v1.AnnotationMark]
	if !strings.HasPrefix(mark, MarkKeyID(key)+":") {
		return false // its content is not measured
	}
	content, err := ContentDigest(merged)
	return err == nil && hmac.Equal([]byte(mark), []byte(Mark(key, merged, content)))
}

// ContentDigest computes MergedAddon.Digest for a stored merged object. It measures the versions and ignores the
// digests in annotations. Errors: *MalformedError.
func ContentDigest(merged *v1.AddonCatalogue) (string, error) {
	if len(merged.Spec.Addons) != 1 {
		return "", &MalformedError{merged.Name, fmt.Sprintf("it has %d add-ons, but must have exactly one", len(merged.Spec.Addons))}
	}
	origins, err := ReadOrigins(merged)
	if err != nil {
		return "", err
	}
	measured := make(map[string]Origin, len(origins))
	for i := range merged.Spec.Addons[0].Versions {
		version := &merged.Spec.Addons[0].Versions[i]
		digest, _, err := measure(version)
		if err != nil {
			return "", &MalformedError{merged.Name, err.Error()}
		}
		measured[version.Version] = Origin{Digest: digest, Catalogue: origins[version.Version].Catalogue}
	}
	found := MergedAddon{Spec: merged.Spec, Origins: measured}
	return found.digest(), nil
}

// Digest is "sha256:<hex>" over the canonical JSON of a value: keys sorted, no space, numbers as written. It returns
// an error if the value can't be encoded as JSON.
func Digest(value any) (string, error) {
	canonical, err := canonicalJSON(value)
	if err != nil {
		return "", fmt.Errorf("computing the digest: %w", err)
	}
	return digestOf(canonical), nil
}

// measure returns a version's digest, which covers all of it, and its size as JSON, in bytes.
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
