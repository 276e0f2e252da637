package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// fetch takes the content from the store, which wakes the installation once it has it.
func (r *Reconciler) fetch(ctx context.Context, f *facts) loop.Outcome {
	reference, err := r.reference(ctx, f.choice.Version.Source)
	if err != nil {
		return fetchOutcome(err)
	}
	if r.askedFor(f) && !f.memory.refreshed {
		r.Store.Refresh(reference)
		f.memory.refreshed = true
	}
	snapshot, err := r.Store.Get(reference, client.ObjectKeyFromObject(f.installation).String(), r.waker(f.installation))
	if err != nil {
		return fetchOutcome(err)
	}
	f.snapshot = snapshot
	return nil
}

// fetchOutcome: the store tries again by itself and wakes the installation, so nothing here counts attempts.
func fetchOutcome(err error) loop.Outcome {
	var missing *fetch.NotFoundError
	var refused *fetch.RefusedError
	var notServed *fetch.NotServedError
	var apiError apierrors.APIStatus
	reason := kubermaticv1.ReasonFetchFailed
	switch {
	case errors.As(err, &apiError):
		return failed(err)
	case errors.Is(err, fetch.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionFetched, Reason: kubermaticv1.ReasonFetching,
			Message: "the add-on's content is being fetched", Recheck: clusterRecheck,
		}
	case errors.As(err, &missing):
		reason = kubermaticv1.ReasonArtifactNotFound
	case errors.As(err, &refused):
		reason = kubermaticv1.ReasonArtifactRefused
	case errors.As(err, &notServed):
		reason = kubermaticv1.ReasonSourceNotServed
	}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionFetched, Reason: reason, Message: err.Error(), Recheck: slowestRetry,
	}
}

// reference turns a catalogue's source into the store's words, with the credentials it names.
func (r *Reconciler) reference(ctx context.Context, source *kubermaticv1.Source) (fetch.Reference, error) {
	switch {
	case source == nil:
		return fetch.Reference{}, &fetch.RefusedError{Subject: "the version", Rule: "it has no source in the catalogue"}
	case source.Git != nil:
		credentials, err := r.credentials(ctx, source.Git.SecretRef, source.Git.CASecretRef)
		return fetch.Reference{Git: gitReference(source.Git), Credentials: credentials}, err
	case source.Helm != nil:
		credentials, err := r.credentials(ctx, source.Helm.SecretRef, source.Helm.CASecretRef)
		helm := &fetch.HelmReference{URL: source.Helm.URL, Chart: source.Helm.Chart, Version: source.Helm.Version}
		return fetch.Reference{Helm: helm, Credentials: credentials}, err
	case source.Docker != nil:
		credentials, err := r.credentials(ctx, source.Docker.SecretRef, source.Docker.CASecretRef)
		image := &fetch.ImageReference{Image: source.Docker.Image, Path: source.Docker.Path}
		return fetch.Reference{Image: image, Credentials: credentials}, err
	}
	return fetch.Reference{}, &fetch.NotServedError{Subject: "the source", Mend: "use one of git, docker and helm"}
}

func gitReference(source *kubermaticv1.GitSource) *fetch.GitReference {
	reference := &fetch.GitReference{Remote: string(source.Remote), Path: source.Path}
	if source.Ref == nil {
		reference.Branch = "main"
		return reference
	}
	reference.Branch, reference.Tag, reference.Commit = source.Ref.Branch, source.Ref.Tag, source.Ref.Commit
	reference.Semver = string(source.Ref.Semver)
	return reference
}

func (r *Reconciler) credentials(ctx context.Context, secretRef, caRef *kubermaticv1.LocalReference) (fetch.Credentials, error) {
	var credentials fetch.Credentials
	if secretRef != nil {
		secret, err := r.sourceSecret(ctx, secretRef.Name)
		if err != nil {
			return credentials, err
		}
		credentials = fetch.SecretCredentials(secret.Data, fetch.Hosts(secret.Annotations[kubermaticv1.AnnotationHosts]))
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

// sourceSecret reads a Secret of the catalogue namespace, where the distributor puts those that are marked for it.
func (r *Reconciler) sourceSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := readMarked[corev1.Secret](ctx, r, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: name})
	if apierrors.IsNotFound(err) || err == nil && secret.Labels[kubermaticv1.LabelUse] != kubermaticv1.UseSource {
		return nil, &fetch.NotFoundError{What: fmt.Sprintf(
			"Secret %q with label %s=%s (mark it on the master, in the catalogue's namespace; what has credentials needs annotation %s too)",
			name, kubermaticv1.LabelUse, kubermaticv1.UseSource, kubermaticv1.AnnotationHosts)}
	}
	return secret, err
}
