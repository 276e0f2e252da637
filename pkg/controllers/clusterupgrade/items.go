package clusterupgrade

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/addonset"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
)

// origin is what an installation is made from at some version of its cluster's Kubernetes.
type origin struct {
	// ref is without a digest: a pin says what is meant now, and not what is after an upgrade.
	ref v1.AddonReference
	// by is the set that has it moved there; nil: none.
	by *v1.AddonSet
}

// origins of the installations of one cluster.
type origins struct {
	*Reconciler
	of target.Description
	// sets are the copies that count, in the order of their claims, read once by the first who asks.
	sets func() ([]*v1.AddonSet, error)
}

func (r *Reconciler) originsIn(ctx context.Context, of target.Description) origins {
	return origins{r, of, sync.OnceValues(func() ([]*v1.AddonSet, error) {
		var copies v1.AddonSetList
		if err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the copies of AddonSets: %w", err)
		}
		var believed []*v1.AddonSet
		for i := range copies.Items {
			if found := &copies.Items[i]; r.Marks.BelievesSet(found) {
				believed = append(believed, found)
			}
		}
		slices.SortFunc(believed, addonset.Compare)
		return believed, nil
	})}
}

// at each of these versions of Kubernetes: another set may be for one of them, and have the
// installation then. Where none is, it stays what it is now.
func (o origins) at(ctx context.Context, one *v1.AddonInstallation, versions []string) ([]origin, error) {
	sets, err := o.sets()
	if err != nil {
		return nil, err
	}
	if one.Labels[v1.LabelSet] == "" {
		listed, err := o.listed(ctx, one, sets)
		return slices.Repeat([]origin{listed}, len(versions)), err
	}
	var wanting []*v1.AddonSet
	now := origin{ref: v1.AddonReference{Name: one.Spec.AddonRef.Name}}
	if one.Spec.AddonRef.Digest == "" {
		now.ref.Version = one.Spec.AddonRef.Version
	}
	for _, set := range sets {
		has := itemFor(set, one, o.of.Ref)
		if has == nil {
			continue
		}
		if set.Name == one.Labels[v1.LabelSet] {
			now = origin{ref: v1.AddonReference{Name: now.ref.Name, Version: has.AddonRef.Version}, by: set}
		}
		if selects(set, o.of) {
			wanting = append(wanting, set)
		}
	}
	after := slices.Repeat([]origin{now}, len(versions))
	for i, next := range versions {
		by, isThere := addonset.Holder(wanting, func(set *v1.AddonSet) bool {
			return o.isFor(set, next) && !o.isFor(set, o.of.KubernetesVersion)
		}, func(set *v1.AddonSet) bool { return o.isFor(set, next) })
		if isThere {
			after[i] = origin{ref: v1.AddonReference{Name: now.ref.Name, Version: itemFor(by, one, o.of.Ref).AddonRef.Version}, by: by}
		}
	}
	return after, nil
}

// listed is what a core add-on is made from, at any version of Kubernetes: an item of the list, or
// what is written where no Core set pins it.
func (o origins) listed(ctx context.Context, one *v1.AddonInstallation, sets []*v1.AddonSet) (origin, error) {
	made := origin{ref: v1.AddonReference{Name: one.Spec.AddonRef.Name}}
	if one.Spec.AddonRef.Digest == "" {
		made.ref.Version = one.Spec.AddonRef.Version
	}
	at := slices.IndexFunc(sets, func(set *v1.AddonSet) bool { return set.Spec.Type == v1.AddonSetCore && set.DeletionTimestamp.IsZero() })
	if at >= 0 {
		made.by = sets[at]
	}
	if o.CoreItem == nil {
		return made, nil
	}
	item, err := o.CoreItem(ctx, o.of, one.Name)
	if err != nil {
		return made, fmt.Errorf("reading the item of core add-on %q: %w", one.Name, err)
	}
	if item != nil && item.Name == made.ref.Name {
		made.ref.Version = item.Version
	}
	return made, nil
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

// stall is what keeps a set from moving an installation of a cluster, with what ends it; empty:
// nothing that is known. What waits for it waits to its timeout else, and nobody is told why.
func stall(by *v1.AddonSet, live *v1.AddonInstallation, in target.Ref) string {
	if by == nil {
		return ""
	}
	if by.Spec.Paused {
		return fmt.Sprintf("AddonSet %q is paused: set its spec.paused to false", by.Name)
	}
	for _, row := range by.Status.Clusters {
		if row.Name == in.LongName() && row.State == v1.ClusterBlocked && in.NameOf(row.Item) == live.Name {
			return fmt.Sprintf("blocked in AddonSet %q: %s", by.Name, row.Message)
		}
	}
	return ""
}
