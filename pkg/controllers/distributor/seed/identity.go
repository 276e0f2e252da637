package seed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// identityError says that a kubeconfig leads to another cluster than before.
type identityError struct{ seed, kept, found string }

func (e *identityError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to another cluster than before: its kube-system has UID %s, not %s. "+
		"Nothing is written there. If the change is intended, annotate Seed %q with %s=%s",
		e.found, e.kept, e.seed, v1.AnnotationConfirmSeed, e.found)
}

// Identities are the UIDs of kube-system of all seeds, in a ConfigMap of the master.
type Identities struct {
	namespace string
	// cached writes; direct reads past the cache.
	cached client.Client
	direct client.Reader
}

// NewIdentities stores them in the platform namespace.
func NewIdentities(namespace string, cached client.Client, direct client.Reader) *Identities {
	return &Identities{namespace: namespace, cached: cached, direct: direct}
}

// confirm checks that a cluster is the seed's: the first contact saves the identity, and only the Seed's annotation
// changes it. The error is safe for status.
func (i *Identities) confirm(ctx context.Context, to Target, uid string) error {
	var kept corev1.ConfigMap
	err := i.direct.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: v1.ConfigMapSeeds}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the identities of seeds can't be read: %s", Describe(err))
	}
	before := kept.Data[to.Name]
	switch {
	case before == uid:
		return nil
	case before != "" && to.Confirmed != uid:
		return &identityError{seed: to.Name, kept: before, found: uid}
	}
	if err := i.keep(ctx, to.Name, uid, apierrors.IsNotFound(err)); err != nil {
		return fmt.Errorf("the seed's identity can't be stored: %s", Describe(err))
	}
	return nil
}

func (i *Identities) keep(ctx context.Context, seed, uid string, missing bool) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: v1.ConfigMapSeeds}}
	before := object.DeepCopy()
	object.Data = map[string]string{seed: uid}
	if missing { // and with it the users of Secrets, which must not be noted again
		made := object.DeepCopy()
		made.Data[v1.PreviousSecretUsers] = ""
		if err := i.cached.Create(ctx, made); !apierrors.IsAlreadyExists(err) {
			return err // otherwise another seed's worker was faster
		}
	}
	return i.cached.Patch(ctx, object, client.MergeFrom(before)) // only this seed's key
}
