package pullsecret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// MaxBytes is how large the original may be: far more than credentials of a few registries.
const MaxBytes = 64 << 10

// Is says whether an object is the original, whatever its marks. Nil records know none.
func (r *Records) Is(object client.Object) bool {
	return r != nil && r.Name != "" && object.GetNamespace() == r.Namespace && object.GetName() == r.Name
}

// contentOf is what is copied of a Secret; nil where it is not marked, of another type or too
// large.
func contentOf(secret *corev1.Secret) []byte {
	content := secret.Data[corev1.DockerConfigJsonKey]
	if secret.Labels[v1.LabelUse] != v1.UsePull || secret.Type != corev1.SecretTypeDockerConfigJson || len(content) > MaxBytes {
		return nil
	}
	return content
}

// digestOf is a keyed digest: who reads the record learns nothing of a short password.
func digestOf(key, content []byte) string {
	if len(content) == 0 {
		return ""
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte("pull-secret\n"))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}

// NewNonce is on one copy and no other.
func NewNonce() string { return rand.Text() }

// OwnerOf are all copies of a user cluster: no installation has an empty name.
func (c *Copies) OwnerOf() ownership.Owner { return ownership.Owner{ClusterUID: c.Origin} }

// Object is a copy as it is written.
func (c *Copies) Object(one Copy, content []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeDockerConfigJson),
		"metadata": map[string]any{
			"namespace": one.Namespace, "name": one.Name,
			"labels":      map[string]any{v1.LabelInstallation: c.OwnerOf().ID()},
			"annotations": map[string]any{v1.AnnotationPullSecret: one.Nonce},
		},
		"data": map[string]any{corev1.DockerConfigJsonKey: encoded(content)},
	}}
}
