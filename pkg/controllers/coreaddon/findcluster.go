package coreaddon

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// findCluster ends the reconciliation if the Cluster belongs to another worker, is paused, deleted or unknown.
func (r *Reconciler) findCluster(ctx context.Context, f *facts) *loop.Outcome {
	found, err := r.Finder.Find(ctx, f.asked)
	if unknown, ok := errors.AsType[*cluster.UnknownError](err); ok {
		return r.withoutCluster(ctx, f, unknown)
	}
	if err != nil {
		return failed(err)
	}
	f.cluster = found
	f.keepOwn(found.Ref)
	switch {
	case !cluster.IsAskedFor(f.asked, found), !cluster.BelongsTo(found, r.Options.WorkerName):
		return &loop.Outcome{Kind: loop.NotMine}
	case found.Deleted:
		r.reports.forget(f.asked)
		f.plan = releasePlan(f.installations)
		return cmp.Or(r.releaseAlone(ctx, f), &loop.Outcome{Kind: loop.Done})
	case found.Paused:
		return &loop.Outcome{Kind: loop.Done}
	}
	return r.findNamespace(ctx, f)
}

// withoutCluster removes finalizers if it is certain that the Cluster does not exist, which two Clusters in one
// namespace do not prove. The installations themselves report ClusterUnknown.
func (r *Reconciler) withoutCluster(ctx context.Context, f *facts, unknown *cluster.UnknownError) *loop.Outcome {
	if unknown.IsContested() {
		log.FromContext(ctx).Info("the core add-ons of a namespace stay as they are", "problem", unknown.Error())
		return &loop.Outcome{Kind: loop.Done}
	}
	f.keepOwn(f.asked)
	guarded := releasePlan(f.installations).release
	var gone []*v1.AddonInstallation
	for _, installation := range guarded {
		isGone, err := r.isGone(ctx, installation)
		if err != nil {
			return failed(err)
		}
		if isGone {
			gone = append(gone, installation)
		}
	}
	f.plan = plan{release: gone}
	if outcome := r.releaseAlone(ctx, f); outcome != nil {
		return outcome
	}
	if len(gone) < len(guarded) {
		return &loop.Outcome{Kind: loop.Waiting, Recheck: cluster.GoneInterval}
	}
	r.reports.forget(f.asked)
	return &loop.Outcome{Kind: loop.Done}
}

// releaseAlone is the whole reconciliation if there is no cluster.
func (r *Reconciler) releaseAlone(ctx context.Context, f *facts) *loop.Outcome {
	r.release(ctx, f)
	if problem := f.problem(); problem != nil {
		return failed(problem)
	}
	return nil
}

// isGone reports whether an installation's Cluster was deleted. An installation that never had a Cluster has applied
// nothing: it is released when it is deleted.
func (r *Reconciler) isGone(ctx context.Context, installation *v1.AddonInstallation) (bool, error) {
	known := installation.Status.Cluster
	if known == nil {
		return !installation.DeletionTimestamp.IsZero(), nil
	}
	return r.Finder.Gone(ctx, target.Recorded(installation.Namespace, *known))
}

// findNamespace ends the reconciliation if the namespace does not exist yet: its creation causes an event.
func (r *Reconciler) findNamespace(ctx context.Context, f *facts) *loop.Outcome {
	namespace := loop.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: f.asked.Namespace}, namespace)
	if apierrors.IsNotFound(err) {
		r.staging.close(f.key(), true)
		return &loop.Outcome{Kind: loop.Done}
	}
	if err != nil {
		return failed(fmt.Errorf("getting namespace %q: %w", f.asked.Namespace, err))
	}
	f.terminating = !namespace.DeletionTimestamp.IsZero()
	r.staging.close(f.key(), f.terminating)
	return nil
}

var catalogueKind = v1.GroupVersion.WithKind("AddonCatalogue")
