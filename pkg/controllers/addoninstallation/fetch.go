package addoninstallation

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// fetch takes the content from the store, which wakes the installation once it has it.
func (r *Reconciler) fetch(ctx context.Context, f *facts) loop.Outcome {
	reference, err := r.references().Source(ctx, f.choice.Version.Source)
	if err != nil {
		return fetchOutcome(err)
	}
	if f.IsAskedFor() && !f.memory.refreshed {
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
		Condition: kubermaticv1.ConditionFetched, Reason: reason, Message: err.Error(), Recheck: installer.SlowestRetry,
	}
}
