package distributor

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// identitiesName is the ConfigMap with the UID of kube-system of each seed, by name.
const identitiesName = "addon-seeds"

// identityError: a kubeconfig leads to another cluster than before.
type identityError struct{ seed, kept, found string }

func (e *identityError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to another cluster than before: its kube-system has UID %s, not %s. "+
		"Nothing is written there. If it is meant, annotate Seed %q with %s=%s",
		e.found, e.kept, e.seed, v1.AnnotationConfirmSeed, e.found)
}

// confirm is the guard: the first contact keeps the identity, and only the Seed's annotation changes it.
func (r *Reconciler) confirm(ctx context.Context, to target, uid string) error {
	var kept corev1.ConfigMap
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: identitiesName}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the identities of seeds can't be read: %s", describe(err))
	}
	before := kept.Data[to.name]
	switch {
	case before == uid:
		return nil
	case before != "" && to.confirmed != uid:
		return &identityError{seed: to.name, kept: before, found: uid}
	}
	if err := r.keepIdentity(ctx, to.name, uid, apierrors.IsNotFound(err)); err != nil {
		return fmt.Errorf("the seed's identity can't be kept: %s", describe(err))
	}
	return nil
}

func (r *Reconciler) keepIdentity(ctx context.Context, seed, uid string, missing bool) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: identitiesName}}
	if missing {
		object.Data = map[string]string{seed: uid}
		err := r.cached.Create(ctx, object)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		object.Data = nil // Another seed's worker was faster.
	}
	// Only this seed's key is patched: workers don't wait for each other.
	patch, err := json.Marshal(map[string]any{"data": map[string]string{seed: uid}})
	if err != nil {
		return err
	}
	return r.cached.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
