package pullsecret

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// MaxBytes is the maximal size of the original: far more than credentials of a few registries.
const MaxBytes = 64 << 10

// AwayFor is how long the original must be missing before its copies are removed: it may be about to be replaced.
const AwayFor = 5 * time.Minute

// Original is the Secret to copy.
type Original struct {
	Name    string
	Content []byte
	// Digest is the digest of the content; empty if there is none.
	Digest string
	// Keeps says that copies do not change, for now or until the original is usable again.
	Keeps bool
	// Until is the time until that ends without a change; 0: it does not.
	Until time.Duration
}

// Original reads the Secret to copy. If it was deleted or lost its mark, copies stay for a while. If it is unusable,
// they stay until it is corrected, which is logged once.
func (h *Held) Original(ctx context.Context, now time.Time) (Original, error) {
	r := h.records
	none := Original{Name: r.Name}
	if r.Name == "" {
		return none, nil
	}
	secret, err := r.Read(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
	if client.IgnoreNotFound(err) != nil {
		return none, fmt.Errorf("reading the pull Secret %q: %w", r.Name, err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil || secret.Labels[v1.LabelUse] != v1.UsePull {
		if r.awaySince.IsZero() {
			r.awaySince = now
		}
		none.Until = max(0, r.Away-now.Sub(r.awaySince))
		none.Keeps = none.Until > 0
		return none, nil
	}
	r.awaySince = time.Time{}
	content := contentOf(secret)
	if len(content) == 0 {
		if !r.isUselessReported {
			ctrl.LoggerFrom(ctx).Info("the pull Secret can't be used, and its copies stay as they are: it has another type, is empty or is too "+
				"large",
				"secret", r.Name)
		}
		r.isUselessReported, none.Keeps = true, true
		return none, nil
	}
	r.isUselessReported = false
	return Original{Name: r.Name, Content: content, Digest: digestOf(r.Key, content)}, nil
}

// Is says whether an object is the original, regardless of its marks. Nil records know none.
func (r *Records) Is(object client.Object) bool {
	return r != nil && r.Name != "" && object.GetNamespace() == r.Namespace && object.GetName() == r.Name
}

// contentOf is the copied content of a Secret; nil if it is not marked, of another type or too large.
func contentOf(secret *corev1.Secret) []byte {
	content := secret.Data[corev1.DockerConfigJsonKey]
	if secret.Labels[v1.LabelUse] != v1.UsePull || secret.Type != corev1.SecretTypeDockerConfigJson || len(content) > MaxBytes {
		return nil
	}
	return content
}

// digestOf is a keyed digest: readers of the record learn nothing of a short password.
func digestOf(key, content []byte) string {
	if len(content) == 0 {
		return ""
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte("pull-secret\n"))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil))
}

// NewNonce returns a nonce for one copy only.
func NewNonce() string { return rand.Text() }

// OwnerOf is the owner of all copies of a user cluster: no installation has an empty name.
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
		"data": map[string]any{corev1.DockerConfigJsonKey: base64.StdEncoding.EncodeToString(content)},
	}}
}
