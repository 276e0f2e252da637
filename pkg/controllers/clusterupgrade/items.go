package clusterupgrade

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/addonset"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
)

// itemsAfter are what an installation will be made from after each step of an upgrade: another set may
// be for the next version, and have the installation then. Where none is, it stays what it is now.
func (r *Reconciler) itemsAfter(
	ctx context.Context, one *v1.AddonInstallation, now v1.AddonReference, of target.Description,
) ([]v1.AddonReference, error) {
	if of.Upgrade == nil || !of.Upgrade.IsPending() {
		return nil, nil
	}
	after := slices.Repeat([]v1.AddonReference{now}, len(of.Upgrade.Plan))
	if one.Labels[v1.LabelSet] == "" {
		return after, nil
	}
	var copies v1.AddonSetList
	if err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the copies of AddonSets: %w", err)
	}
	var wanting []v1.AddonSet
	for i := range copies.Items {
		if found := &copies.Items[i]; r.Marks.BelievesSet(found) && selects(found, of) && itemFor(found, one, of.Ref) != nil {
			wanting = append(wanting, *found)
		}
	}
	slices.SortFunc(wanting, func(a, b v1.AddonSet) int { return addonset.Compare(&a, &b) })
	for i, next := range of.Upgrade.Plan {
		if at := r.holder(wanting, of.KubernetesVersion, next); at != nil {
			after[i].Version = itemFor(at, one, of.Ref).AddonRef.Version
		}
	}
	return after, nil
}

// holder is, of sets in their order, the one that has an installation at a next version: one that is
// not for the version now goes first. nil: none.
func (r *Reconciler) holder(sets []v1.AddonSet, now, next string) *v1.AddonSet {
	var first *v1.AddonSet
	for i := range sets {
		switch one := &sets[i]; {
		case !r.isFor(one, next):
		case !r.isFor(one, now):
			return one
		case first == nil:
			first = one
		}
	}
	return first
}

// isFor says whether the constraints of a set have a version of Kubernetes.
func (r *Reconciler) isFor(of *v1.AddonSet, kubernetes string) bool {
	constraints := of.Spec.Constraints
	if constraints == nil || constraints.K8sVersion == "" {
		return true
	}
	within, err := catalogue.ParseRange(string(constraints.K8sVersion))
	version, isKnown := catalogue.PlatformVersion(kubernetes)
	return err == nil && isKnown && within.Contains(version, r.Options.AllowPrereleases)
}

// selects says whether a set is about a cluster, whatever its version. What asks for a version of KKP
// is about no other platform.
func selects(one *v1.AddonSet, of target.Description) bool {
	constraints := one.Spec.Constraints
	if one.Spec.Type == v1.AddonSetCore || !one.DeletionTimestamp.IsZero() || constraints != nil && constraints.KKPVersion != "" {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(one.Spec.ClusterSelector)
	return err == nil && selector.Matches(cluster.Labels(of, one.Annotations[v1.AnnotationSeed]))
}

// itemFor is the item of a set that has an installation, or may take it over; nil: none.
func itemFor(of *v1.AddonSet, live *v1.AddonInstallation, in target.Ref) *v1.AddonSetItem {
	for i := range of.Spec.Addons {
		one := &of.Spec.Addons[i]
		isRelease := one.ReleaseName == "" || one.ReleaseName == live.Spec.ReleaseName
		if in.NameOf(string(one.Name)) == live.Name && one.AddonRef.Name == live.Spec.AddonRef.Name &&
			one.TargetNamespace == live.Spec.TargetNamespace && isRelease {
			return one
		}
	}
	return nil
}
