package distributor

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// secretReader remembers Secrets by resourceVersion. The watch has only metadata, so that the platform namespace's
// Secrets are not in memory.
type secretReader map[string]knownSecret

type knownSecret struct {
	uid     types.UID
	version string
	copy    *seed.SecretCopy
	problem string
}

// findSecrets reads the marked Secrets that merged entries name.
func (r *Reconciler) findSecrets(ctx context.Context, f *facts) *loop.Outcome {
	f.secretProblems = map[string]string{}
	f.secrets = seed.Secrets{
		Copies: map[string]seed.SecretCopy{}, Held: map[string]bool{}, Revoked: map[string]bool{},
	}
	fresh := secretReader{}
	for _, name := range secretNames(f.merged) {
		found, err := r.sourceSecret(ctx, f, name)
		switch {
		case apierrors.IsNotFound(err):
			f.secrets.Held[name] = true
			f.secretProblems[name] = "it does not exist in the platform namespace"
			continue
		case err != nil:
			return failed(fmt.Errorf("reading Secret %q: %w", name, err))
		}
		fresh[name] = found
		if found.copy == nil {
			f.secretProblems[name] = found.problem
			continue
		}
		f.secrets.Copies[name] = *found.copy
	}
	r.secrets = fresh
	return nil
}

// sourceSecret reads a Secret unless its present version is known.
func (r *Reconciler) sourceSecret(ctx context.Context, f *facts, name string) (knownSecret, error) {
	about, err := r.secretAbout(ctx, f, name)
	if err != nil {
		return knownSecret{}, err
	}
	if known, ok := r.secrets[name]; ok && known.uid == about.UID && known.version == about.ResourceVersion {
		return known, nil
	}
	secret, err := r.readSecret(ctx, about)
	if err != nil {
		return knownSecret{}, err
	}
	found := knownSecret{uid: secret.UID, version: secret.ResourceVersion}
	found.copy, found.problem = copyOf(secret, r.secretKeys)
	return found, nil
}

// readSecret reads the Secret whose metadata was checked, and no later one.
func (r *Reconciler) readSecret(ctx context.Context, about *metav1.PartialObjectMetadata) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.direct.Get(ctx, client.ObjectKeyFromObject(about), secret); err != nil {
		return nil, err
	}
	if secret.UID != about.UID || secret.ResourceVersion != about.ResourceVersion {
		return nil, errors.New("it changed during the reconciliation: trying again")
	}
	return secret, nil
}

// secretMetadata is the cached metadata of a Secret of the platform namespace.
func (r *Reconciler) secretMetadata(ctx context.Context, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	about := loop.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	return about, r.cached.Get(ctx, key, about)
}

// secretAbout is the same for one reconciliation: once not found, a Secret counts as absent until the end.
func (r *Reconciler) secretAbout(ctx context.Context, f *facts, name string) (*metav1.PartialObjectMetadata, error) {
	if f.absent[name] {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	about, err := r.secretMetadata(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: name})
	f.absent[name] = apierrors.IsNotFound(err)
	return about, err
}

// copyOf is the copy of a Secret for seeds, or why there is none.
func copyOf(secret *corev1.Secret, keys fetch.SecretKeys) (*seed.SecretCopy, string) {
	if !cluster.IsForSources(secret) {
		return nil, fmt.Sprintf("it has no label %s=%s", v1.LabelUse, v1.UseSource)
	}
	hosts := secret.Annotations[v1.AnnotationHosts]
	found := &seed.SecretCopy{Hosts: hosts, Data: map[string][]byte{}}
	secrets := false
	for _, key := range keys {
		if value, ok := secret.Data[key.Name]; ok {
			found.Data[key.Name] = value
			secrets = secrets || !key.Public && value != nil
		}
	}
	if len(found.Data) == 0 {
		return nil, fmt.Sprintf("it has none of the keys %v", keys.Names())
	}
	if hosts == "" && secrets {
		return nil, fmt.Sprintf("it has credentials, but no annotation %s with the hosts that may get them", v1.AnnotationHosts)
	}
	// It has no digest of the data: readers of metadata could learn from it.
	revision, err := catalogue.Digest([]string{string(secret.UID), secret.ResourceVersion})
	if err != nil {
		return nil, "its revision can't be computed"
	}
	found.Revision = revision
	return found, ""
}

func secretNames(merged catalogue.Merged) []string {
	names := sets.New[string]()
	for _, addon := range merged.Addons {
		names.Insert(catalogue.SecretNames(&addon.Spec)...)
	}
	return sets.List(names)
}
