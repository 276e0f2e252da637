package resolution

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Source turns a version's source into the words of who fetches it, with the credentials it names.
// Errors: those of package fetch, or the reader's.
func (r References) Source(ctx context.Context, source *v1.Source) (fetch.Reference, error) {
	var made fetch.Reference
	var secret, authority *v1.LocalReference
	switch {
	case source == nil:
		return made, &fetch.RefusedError{Subject: "the version", Rule: "it has no source in the catalogue"}
	case source.Git != nil:
		made.Git, secret, authority = gitReference(source.Git), source.Git.SecretRef, source.Git.CASecretRef
	case source.Helm != nil:
		helm := source.Helm
		made.Helm = &fetch.HelmReference{URL: helm.URL, Chart: helm.Chart, Version: helm.Version}
		secret, authority = helm.SecretRef, helm.CASecretRef
	case source.Docker != nil:
		made.Image = &fetch.ImageReference{Image: source.Docker.Image, Path: source.Docker.Path}
		secret, authority = source.Docker.SecretRef, source.Docker.CASecretRef
	default:
		return made, &fetch.NotServedError{Subject: "the source", Mend: "use one of git, docker and helm"}
	}
	var err error
	made.Credentials, err = r.credentials(ctx, secret, authority)
	return made, err
}

func gitReference(source *v1.GitSource) *fetch.GitReference {
	reference := &fetch.GitReference{Remote: string(source.Remote), Path: source.Path}
	if source.Ref == nil {
		reference.Branch = "main"
		return reference
	}
	reference.Branch, reference.Tag, reference.Commit = source.Ref.Branch, source.Ref.Tag, source.Ref.Commit
	reference.Semver = string(source.Ref.Semver)
	return reference
}

func (r References) credentials(
	ctx context.Context, secretRef, caRef *v1.LocalReference,
) (fetch.Credentials, error) {
	var credentials fetch.Credentials
	if secretRef != nil {
		secret, err := r.sourceSecret(ctx, secretRef.Name)
		if err != nil {
			return credentials, err
		}
		credentials = fetch.SecretCredentials(secret.Data, fetch.Hosts(secret.Annotations[v1.AnnotationHosts]))
	}
	if caRef != nil {
		secret, err := r.sourceSecret(ctx, caRef.Name)
		if err != nil {
			return credentials, err
		}
		credentials.CA = secret.Data[fetch.KeyCA]
		if len(credentials.CA) == 0 {
			return credentials, &fetch.NotFoundError{What: fmt.Sprintf("key %q in Secret %q", fetch.KeyCA, caRef.Name)}
		}
	}
	return credentials, nil
}

// sourceSecret reads a Secret of the catalogue namespace, where the distributor puts those that are
// marked for it.
func (r References) sourceSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := r.Secret(ctx, types.NamespacedName{Namespace: r.CatalogueNamespace, Name: name})
	if apierrors.IsNotFound(err) || err == nil && secret.Labels[v1.LabelUse] != v1.UseSource {
		return nil, &fetch.NotFoundError{What: fmt.Sprintf(
			"Secret %q with label %s=%s (mark it on the master, in the catalogue's namespace; what has credentials "+
				"needs annotation %s too)", name, v1.LabelUse, v1.UseSource, v1.AnnotationHosts)}
	}
	return secret, err
}
