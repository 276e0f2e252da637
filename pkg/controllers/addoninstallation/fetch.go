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
	reference, err := r.reference(ctx, f.entry.Source)
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
	if source == nil {
		return fetch.Reference{}, &fetch.RefusedError{Subject: "the version", Rule: "it has no source in the catalogue"}
	}
	return r.SourceKinds.Reference(source.Kind(), func(name string) (*corev1.Secret, error) { return r.sourceSecret(ctx, name) })
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
