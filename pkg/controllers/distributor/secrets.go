package distributor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// wantedSecrets are the source Secrets that go along with the merged catalogue.
type wantedSecrets struct {
	copies map[string]secretCopy
	// held are named by an entry but missing on the master: what a seed has of them stays.
	held map[string]bool
	// holdAll keeps every copy: an add-on was refused, and what the seeds have of it may need some.
	holdAll bool
	// problems say by name why a Secret that an entry names is not handed on.
	problems map[string]string
}

// secretCopy is what a seed gets of a source Secret: documented keys only.
type secretCopy struct {
	hosts string
	// revision tells contents apart without telling anything about them.
	revision string
	data     map[string][]byte
}

// secretReader remembers Secrets by resourceVersion. The watch holds metadata only, so that a platform namespace full of
// Secrets does not end up in memory.
type secretReader struct{ known map[string]knownSecret }

type knownSecret struct {
	uid     types.UID
	version string
	copy    *secretCopy
	problem string
}

func (r *Reconciler) handOn(ctx context.Context, p *pass) error {
	p.secrets = wantedSecrets{
		copies: map[string]secretCopy{}, held: map[string]bool{}, problems: map[string]string{},
		holdAll: len(p.merged.Refused) > 0,
	}
	fresh := map[string]knownSecret{}
	for _, name := range secretNames(p.merged) {
		found, err := r.sourceSecret(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			p.secrets.held[name] = true
			p.secrets.problems[name] = "it does not exist in the platform namespace"
			continue
		case err != nil:
			return fmt.Errorf("reading Secret %q: %w", name, err)
		}
		fresh[name] = found
		if found.copy == nil {
			p.secrets.problems[name] = found.problem
			continue
		}
		p.secrets.copies[name] = *found.copy
	}
	r.secrets.known = fresh
	return nil
}

// sourceSecret reads a Secret unless it is known at its present version.
func (r *Reconciler) sourceSecret(ctx context.Context, name string) (knownSecret, error) {
	key := client.ObjectKey{Namespace: r.options.Namespace, Name: name}
	about := &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.cached.Get(ctx, key, about); err != nil {
		return knownSecret{}, err
	}
	if known, ok := r.secrets.known[name]; ok && known.uid == about.UID && known.version == about.ResourceVersion {
		return known, nil
	}
	secret := &corev1.Secret{}
	if err := r.direct.Get(ctx, key, secret); err != nil {
		return knownSecret{}, err
	}
	found := knownSecret{uid: secret.UID, version: secret.ResourceVersion}
	found.copy, found.problem = copyOf(secret, r.secretKeys)
	return found, nil
}

// copyOf is what may be handed on of a Secret, or why nothing is.
func copyOf(secret *corev1.Secret, keys fetch.SecretKeys) (*secretCopy, string) {
	_, kkp := secret.Annotations[kkpv1.AnnotationSecretType]
	if secret.Labels[v1.LabelUse] != v1.UseSource && !kkp {
		return nil, fmt.Sprintf("it has no label %s=%s", v1.LabelUse, v1.UseSource)
	}
	hosts := secret.Annotations[v1.AnnotationHosts]
	found := &secretCopy{hosts: hosts, data: map[string][]byte{}}
	secrets := false
	for _, key := range keys {
		if value, ok := secret.Data[key.Name]; ok {
			found.data[key.Name] = value
			secrets = secrets || !key.Public && value != nil
		}
	}
	if len(found.data) == 0 {
		return nil, fmt.Sprintf("it has none of the keys %v", keys.Names())
	}
	if hosts == "" && secrets {
		return nil, fmt.Sprintf("it has credentials but no annotation %s that says which hosts may get them", v1.AnnotationHosts)
	}
	// Names and versions only: a digest of the data would tell whoever reads metadata about it.
	revision, err := catalogue.Digest([]string{string(secret.UID), secret.ResourceVersion})
	if err != nil {
		return nil, "its revision can't be told"
	}
	found.revision = revision
	return found, ""
}

// secretNames are the Secrets that merged entries name, sorted.
func secretNames(merged catalogue.Merged) []string {
	names := map[string]bool{}
	for _, addon := range merged.Addons {
		for _, name := range namedBy(&addon.Spec) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// namedBy are the Secrets that the versions of a spec name.
func namedBy(spec *v1.AddonCatalogueSpec) []string {
	var names []string
	for i := range spec.Addons {
		for j := range spec.Addons[i].Versions {
			kind := spec.Addons[i].Versions[j].Source.Kind()
			if kind == nil {
				continue
			}
			credentials, authorities := kind.Secrets()
			for _, reference := range []*v1.LocalReference{credentials, authorities} {
				if reference != nil {
					names = append(names, reference.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
