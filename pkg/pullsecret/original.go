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
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// MaxBytes is how large the original may be: far more than credentials of a few registries.
const MaxBytes = 64 << 10

// AwayFor is how long the original has to be away before its copies go: it may be on its way, as
// where somebody replaces it.
const AwayFor = 5 * time.Minute

// Original is what is to be copied.
type Original struct {
	Name    string
	Content []byte
	// Digest is that of the content; empty where there is none.
	Digest string
	// Keeps says that copies stay as they are, for now or until the original is of use again.
	Keeps bool
	// Until is how long that is, if it will end by itself; 0: it will not.
	Until time.Duration
}

// Original reads what is to be copied at a time. Where it went or lost its mark copies stay for a
// while; where it is of no use, until somebody mends it, which is logged once.
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
		if !r.isUselessTold {
			ctrl.LoggerFrom(ctx).Info("the pull Secret is of no use, and its copies stay as they are: it is of another type, empty or too large",
				"secret", r.Name)
		}
		r.isUselessTold, none.Keeps = true, true
		return none, nil
	}
	r.isUselessTold = false
	return Original{Name: r.Name, Content: content, Digest: digestOf(r.Key, content)}, nil
}

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
		"data": map[string]any{corev1.DockerConfigJsonKey: base64.StdEncoding.EncodeToString(content)},
	}}
}
