package coreaddon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// look reads the installations. Those that are none of ours are shared with the cache, and only read: a cluster may have
// hundreds, of which a pass asks the name.
func (r *Reconciler) look(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonInstallationList
	if err := r.Client.List(ctx, &list, client.InNamespace(f.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.namespace, err))
	}
	f.installations = list.Items
	for i := range f.installations {
		if !isSomebodys(&f.installations[i]) {
			f.installations[i] = *f.installations[i].DeepCopy()
		}
	}
	return nil
}

// findCluster ends the pass where nothing is to be kept: the Cluster is another worker's, paused, deleted, gone or unknown.
func (r *Reconciler) findCluster(ctx context.Context, f *facts) loop.Outcome {
	found, err := r.Finder.InNamespace(ctx, f.namespace)
	if unknown, ok := errors.AsType[*cluster.UnknownError](err); ok {
		return r.withoutCluster(ctx, f, unknown)
	}
	if err != nil {
		return failed(err)
	}
	f.cluster = found
	switch {
	case !cluster.BelongsTo(found, r.Options.WorkerName):
		return loop.Done{}
	case cluster.Deleted(found):
		r.reports.forget(f.namespace)
		f.plan = releasePlan(f.installations)
		return orDone(r.letGo(ctx, f))
	case found.Spec.Pause:
		return loop.Done{}
	}
	return r.findNamespace(ctx, f)
}

// withoutCluster lets go what belongs to a Cluster that is gone for certain. Two Clusters of one namespace are no such case.
// The installations themselves say ClusterUnknown.
func (r *Reconciler) withoutCluster(ctx context.Context, f *facts, unknown *cluster.UnknownError) loop.Outcome {
	if len(unknown.Clusters) > 0 {
		log.FromContext(ctx).Info("the core add-ons of a namespace stay as they are", "problem", unknown.Error())
		return loop.Done{}
	}
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
	if outcome := r.letGo(ctx, f); outcome != nil {
		return outcome
	}
	if len(gone) < len(guarded) {
		return loop.Waiting{Recheck: cluster.GoneInterval}
	}
	r.reports.forget(f.namespace)
	return loop.Done{}
}

// isGone says whether an installation's Cluster is gone. One that never saw a Cluster has applied nothing: it goes when
// somebody deletes it.
func (r *Reconciler) isGone(ctx context.Context, installation *v1.AddonInstallation) (bool, error) {
	known := installation.Status.Cluster
	if known == nil {
		return !installation.DeletionTimestamp.IsZero(), nil
	}
	return r.Finder.Gone(ctx, cluster.Identity{Name: known.Name, UID: known.UID})
}

func orDone(outcome loop.Outcome) loop.Outcome {
	if outcome == nil {
		return loop.Done{}
	}
	return outcome
}

// findNamespace: one that does not exist yet is waited for, and comes with an event.
func (r *Reconciler) findNamespace(ctx context.Context, f *facts) loop.Outcome {
	namespace := metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.Client.Get(ctx, client.ObjectKey{Name: f.namespace}, namespace)
	if apierrors.IsNotFound(err) {
		return loop.Done{}
	}
	if err != nil {
		return failed(fmt.Errorf("getting namespace %q: %w", f.namespace, err))
	}
	f.terminating = !namespace.DeletionTimestamp.IsZero()
	return nil
}

// decideSet reads the list, once for each of its versions, and puts rules and list together.
func (r *Reconciler) decideSet(ctx context.Context, f *facts) loop.Outcome {
	found := &corev1.ConfigMap{}
	err := r.list.Get(ctx, client.ObjectKey{Namespace: r.Options.Namespace, Name: ListName}, found)
	if apierrors.IsNotFound(err) {
		found = nil
	} else if err != nil {
		return failed(fmt.Errorf("getting ConfigMap %q: %w", ListName, err))
	}
	state, changed := r.lists.of(found)
	if changed {
		r.takeUp(found, state)
	}
	f.set = setFor(f.cluster, state)
	return nil
}

// takeUp notes which add-ons the list names, and says what is wrong with it.
func (r *Reconciler) takeUp(found *corev1.ConfigMap, state listState) {
	names := map[string]bool{}
	for _, one := range state.items {
		names[string(one.spec.AddonRef.Name)] = true
	}
	r.interesting.Store(&names)
	if state.problem != nil {
		r.Recorder.Eventf(found, nil, corev1.EventTypeWarning, v1.EventListRefused, "Read", "%s: the last good list stays in force",
			state.problem)
	}
}

func (r *Reconciler) compare(ctx context.Context, f *facts) loop.Outcome {
	types := map[string]v1.CatalogueType{}
	for _, one := range f.set.wanted {
		found, err := r.typeOf(ctx, one.addon())
		if err != nil {
			return failed(err)
		}
		types[one.addon()] = found
	}
	f.plan = planFor(f.set, f.installations, func(addon string) v1.CatalogueType { return types[addon] })
	if f.terminating {
		f.plan.apply = slices.DeleteFunc(f.plan.apply, func(c change) bool { return c.live == nil })
	}
	return nil
}

// typeOf is the type of the catalogues that have an add-on; empty where none has it.
func (r *Reconciler) typeOf(ctx context.Context, addon string) (v1.CatalogueType, error) {
	found := &v1.AddonCatalogue{} // shared with the cache, and only read
	key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addon}
	err := r.Client.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !r.Marks.Believes(found) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("getting merged AddonCatalogue %q: %w", addon, err)
	}
	return found.Spec.Type, nil
}

// heldText says what is not known of a set; empty where all is.
func heldText(s *set) string {
	names := slices.Sorted(maps.Keys(s.held))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("whether the cluster is to have %s can't be told: %s", names[0], s.held[names[0]])
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	about := &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(kind)
	return about
}
