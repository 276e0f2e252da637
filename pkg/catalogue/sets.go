package catalogue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// DependencyDigest is the digest of the merged catalogues that an AddonSet depends on, from their digests
// (MergedAddon.Digest, Entry.Digest) by name. Master and seeds compare it. Names without a digest are left out: the
// add-on is in no catalogue.
func DependencyDigest(digests map[string]string) string {
	known := make(map[string]string, len(digests))
	for name, digest := range digests {
		if digest != "" {
			known[name] = digest
		}
	}
	digest, err := Digest(known)
	if err != nil { // texts always encode
		return ""
	}
	return digest
}

// Dependencies are the names of those among all merged catalogues that a set depends on; a set of type Core depends
// on all.
func Dependencies[T any](spec *v1.AddonSetSpec, all map[string]T) []string {
	var names []string
	if spec.Type == v1.AddonSetCore {
		for name := range all {
			names = append(names, name)
		}
		return names
	}
	for i := range spec.Addons {
		names = append(names, string(spec.Addons[i].AddonRef.Name))
	}
	return names
}

// SetDigest is the digest of a set's spec, annotation v1.AnnotationDigest of its copies.
func SetDigest(spec *v1.AddonSetSpec) (string, error) { return Digest(spec) }

// SetMark is the value of annotation v1.AnnotationMark of a copy of an AddonSet, as Mark is of a merged catalogue:
// over namespace, name, content (SetDigest of the stored object) and the annotations that readers use.
func SetMark(key []byte, set *v1.AddonSet, content string) string {
	mac := hmac.New(sha256.New, key)
	parts := []string{
		"kind:AddonSet", // no mark of a catalogue begins with this: a namespace has no colon
		set.Namespace, set.Name, content, set.Annotations[v1.AnnotationDigest], set.Annotations[v1.AnnotationSeed],
		set.Annotations[v1.AnnotationGate], set.Annotations[v1.AnnotationRemovalApproved], set.Annotations[v1.AnnotationConfirmDeletion],
		set.Annotations[v1.AnnotationCreated],
	}
	if leaveOut := set.Annotations[v1.AnnotationLeaveOut]; leaveOut != "" { // without one, marks of earlier releases stay valid
		parts = append(parts, leaveOut)
	}
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return MarkKeyID(key) + ":" + hex.EncodeToString(mac.Sum(nil))
}

// IsSetMarked reports whether a copy of an AddonSet is marked with a key and has the marked content.
func IsSetMarked(key []byte, set *v1.AddonSet) bool {
	mark := set.Annotations[v1.AnnotationMark]
	if !strings.HasPrefix(mark, MarkKeyID(key)+":") {
		return false // its content is not measured
	}
	content, err := SetDigest(&set.Spec)
	return err == nil && hmac.Equal([]byte(mark), []byte(SetMark(key, set, content)))
}
