package clusterupgrade

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// longestCause bounds the text from a set, in bytes: the way to continue follows it in the condition.
const longestCause = 150

// origin is the reference that an installation is made from at some version of its cluster's Kubernetes.
type origin struct {
	// ref is without a digest: a pin is for the present, and not for the time after an upgrade.
	ref v1.AddonReference
	// by is the set that moves it there; nil if there is none.
	by *v1.AddonSet
}

// origins has the origins of the installations of one cluster, as read for one reconciliation.
type origins struct {
	of target.Description
	// sets are the valid copies, in the order of their claims.
	sets []*v1.AddonSet
	// listed are the items of core list and rules, by the names of their installations, and core is the set that moves
	// core add-ons there; nil if there is none.
	listed map[string]v1.AddonReference
	core   *v1.AddonSet
	// preReleases match ranges that name no pre-release.
	preReleases bool
}

func (r *Reconciler) originsIn(ctx context.Context, of target.Description) (origins, error) {
	found := origins{of: of, preReleases: r.Options.AllowPrereleases}
	var copies v1.AddonSetList
	err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return found, fmt.Errorf("listing the copies of AddonSets: %w", err)
	}
	for i := range copies.Items {
		if one := &copies.Items[i]; r.Marks.BelievesSet(one) {
			found.sets = append(found.sets, one)
		}
	}
	slices.SortFunc(found.sets, addonset.Compare)
	if found.listed, found.core, err = r.CoreList(ctx, of); err != nil {
		return found, fmt.Errorf("reading the core list: %w", err)
	}
	return found, nil
}

// at are the origins at each of these versions of Kubernetes: another set may be for one of them, and have the
// installation then. If no set is, the present origin stays. A core add-on is made from its item at any version, or
// from its written reference if it has no item.
func (o origins) at(live *v1.AddonInstallation, versions []string) []origin {
	now := origin{ref: writtenIn(live)}
	if live.Labels[v1.LabelSet] == "" {
		now.by = o.core
		if item, isListed := o.listed[live.Name]; isListed && item.Name == now.ref.Name {
			now.ref.Version = item.Version
		}
		return slices.Repeat([]origin{now}, len(versions))
	}
	var wanting []*v1.AddonSet
	for _, set := range o.sets {
		has := itemFor(set, live, o.of.Ref)
		if has == nil {
			continue
		}
		if set.Name == live.Labels[v1.LabelSet] {
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
			after[i] = origin{ref: v1.AddonReference{Name: now.ref.Name, Version: itemFor(by, live, o.of.Ref).AddonRef.Version}, by: by}
		}
	}
	return after
}

// writtenIn is the reference of an installation, without a pin.
func writtenIn(live *v1.AddonInstallation) v1.AddonReference {
	written := v1.AddonReference{Name: live.Spec.AddonRef.Name}
	if live.Spec.AddonRef.Digest == "" {
		written.Version = live.Spec.AddonRef.Version
	}
	return written
}

// isFor says whether the constraints of a set include a version of Kubernetes.
func (o origins) isFor(of *v1.AddonSet, kubernetes string) bool {
	constraints := of.Spec.Constraints
	if constraints == nil || constraints.K8sVersion == "" {
		return true
	}
	within, err := catalogue.ParseRange(string(constraints.K8sVersion))
	version, isKnown := catalogue.PlatformVersion(kubernetes)
	return err == nil && isKnown && within.Contains(version, o.preReleases)
}

// selects says whether a set is for a cluster, regardless of its version. A set with a constraint on KKP's version is
// for no other platform.
func selects(one *v1.AddonSet, of target.Description) bool {
	constraints := one.Spec.Constraints
	if one.Spec.Type == v1.AddonSetCore || !one.DeletionTimestamp.IsZero() || constraints != nil && constraints.KKPVersion != "" {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(one.Spec.ClusterSelector)
	return err == nil && selector.Matches(cluster.Labels(of, one.Annotations[v1.AnnotationSeed]))
}

// itemFor is the item of a set that has an installation, or may adopt it; nil if there is none.
func itemFor(of *v1.AddonSet, live *v1.AddonInstallation, in target.Ref) *v1.AddonSetItem {
	for i := range of.Spec.Addons {
		one := &of.Spec.Addons[i]
		isRelease := one.ReleaseName == "" || one.ReleaseName == live.Spec.ReleaseName
		isPlace := one.TargetNamespace == "" || one.TargetNamespace == live.Spec.TargetNamespace
		if in.NameOf(string(one.Name)) == live.Name && one.AddonRef.Name == live.Spec.AddonRef.Name && isPlace && isRelease {
			return one
		}
	}
	return nil
}

// stall says why a set does not move an installation of a cluster, and how to continue; empty if no reason is known.
// Otherwise the upgrade would wait until its timeout without a reported reason.
func stall(by *v1.AddonSet, live *v1.AddonInstallation, in target.Ref) string {
	if by == nil {
		return ""
	}
	if by.Spec.Paused {
		return fmt.Sprintf("AddonSet %q is paused: set its spec.paused to false", by.Name)
	}
	for _, row := range by.Status.Clusters {
		if row.Name == in.LongName() && row.State == v1.ClusterBlocked && in.NameOf(row.Item) == live.Name {
			return fmt.Sprintf("blocked in AddonSet %q: %s", by.Name, text.Cut(row.Message, longestCause))
		}
	}
	return ""
}
