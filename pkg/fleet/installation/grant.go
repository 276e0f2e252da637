package installation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Grant lets one installation of a set have values of the platform (ADR 67). Its text, secret/key/content/mark, is in
// annotation v1.AnnotationPlatformValues.
type Grant struct {
	// Secret and Key name the values, in the namespace of the merged catalogues.
	Secret, Key string
	// Content is their keyed digest (ValuesDigest).
	Content string
	mark    string
}

// grantParts and digestLength are for the annotation's text.
const (
	grantParts   = 4
	digestLength = 2 * sha256.Size
)

// ValuesDigest is a keyed digest of values of the platform: without the key it reveals nothing.
func ValuesDigest(key []byte, secret, dataKey string, data []byte) string {
	return keyed(key, "kind:PlatformValues", secret, dataKey, string(data))
}

// Sign returns the annotation's text for an installation. One that does not exist yet has no UID, and its text is
// valid for no installation: it waits for its grant.
func (g Grant) Sign(key []byte, of *v1.AddonInstallation) string {
	return strings.Join([]string{g.Secret, g.Key, g.Content, g.markFor(key, of)}, "/")
}

// ReadGrant reads the annotation's text. False: it is no grant.
func ReadGrant(text string) (Grant, bool) {
	if strings.Count(text, "/") != grantParts-1 { // the usual case, at no cost
		return Grant{}, false
	}
	parts := strings.Split(text, "/")
	read := Grant{Secret: parts[0], Key: parts[1], Content: parts[2], mark: parts[3]}
	isRight := len(validation.IsDNS1123Subdomain(read.Secret)) == 0 && len(validation.IsConfigMapKey(read.Key)) == 0 &&
		len(read.Content) == digestLength && len(read.mark) == digestLength
	return read, isRight
}

// IsFor says whether a grant was signed for the present state of an installation.
func (g Grant) IsFor(key []byte, live *v1.AddonInstallation) bool {
	return live.UID != "" && !live.Spec.CoreAddon && live.Labels[v1.LabelManagedBy] == v1.ManagedBySets && live.Labels[v1.LabelSet] != "" &&
		hmac.Equal([]byte(g.mark), []byte(g.markFor(key, live)))
}

// markFor covers all fields of an installation that decide where the values are rendered into, except for those that
// the cluster's users may set: their texts are not rendered.
func (g Grant) markFor(key []byte, of *v1.AddonInstallation) string {
	spec := &of.Spec
	return keyed(key, "kind:Grant", of.Namespace, of.Name, string(of.UID), of.Labels[v1.LabelSet], g.Secret, g.Key, g.Content,
		string(spec.AddonRef.Name), spec.AddonRef.Version, spec.AddonRef.Digest, spec.TargetNamespace, spec.ReleaseName, spec.ValuesTemplate)
}

func keyed(key []byte, parts ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// hasItsValues says whether the applied revision has the values of the platform that its set grants now. Writing an
// annotation is no new generation, so Ready alone does not show it.
func hasItsValues(live *v1.AddonInstallation) bool {
	if live.Spec.CoreAddon {
		return true
	}
	granted, _ := ReadGrant(live.Annotations[v1.AnnotationPlatformValues])
	applied := live.Status.LastApplied
	return applied == nil && granted.Content == "" || applied != nil && applied.PlatformValues == granted.Content
}
