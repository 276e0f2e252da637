package coreaddon

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// compare plans the reconciliation: it compares the set with the existing installations.
func (r *Reconciler) compare(ctx context.Context, f *facts) *loop.Outcome {
	found := map[string]*v1.AddonCatalogue{}
	for _, one := range f.set.wanted {
		merged, err := r.mergedOf(ctx, one.addon())
		if err != nil {
			return failed(err)
		}
		found[one.addon()] = merged
	}
	f.set.complete(f.cluster.Ref, f.installations, func(addon string) *v1.Addon {
		if merged := found[addon]; merged != nil && len(merged.Spec.Addons) > 0 {
			return &merged.Spec.Addons[0]
		}
		return nil
	})
	f.plan = planFor(f.set, f.installations, func(addon string) v1.CatalogueType {
		if merged := found[addon]; merged != nil {
			return merged.Spec.Type
		}
		return ""
	})
	if f.inForce != nil {
		r.planStage(f)
	}
	if f.terminating { // the namespace's next event starts a reconciliation
		f.plan.apply = nil
	}
	if err := r.noteGates(ctx, f); err != nil {
		return failed(err)
	}
	return nil
}

// mergedOf is the merged catalogue of an add-on; nil if there is none.
func (r *Reconciler) mergedOf(ctx context.Context, addon string) (*v1.AddonCatalogue, error) {
	found := &v1.AddonCatalogue{} // shared with the cache: read only
	key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addon}
	err := r.Client.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !r.Marks.Believes(found) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting merged AddonCatalogue %q: %w", addon, err)
	}
	return found, nil
}

// plan has the writes of one reconciliation, and its findings.
type plan struct {
	// apply are created or updated.
	apply []change
	// release are being deleted and lose their finalizer: nothing requires them any longer.
	release []*v1.AddonInstallation
	// remove are out of the set: they lose their finalizer and are deleted.
	remove []*v1.AddonInstallation
	// blocked are being deleted while they are in the set.
	blocked []*v1.AddonInstallation
	// taken are names of the set that installations of other clients have.
	taken []string
	// missing are add-ons of rules that no Core catalogue has, unknown those of the list that no catalogue has.
	missing, unknown []string
	// members are the installations of the set that exist.
	members []*v1.AddonInstallation
	total   int
}

// change is one core add-on and its installation; nil if there is none.
type change struct {
	wanted wanted
	live   *v1.AddonInstallation
	// stays says, under a Core set, that the change does not affect the user cluster.
	stays bool
}

// catalogueTypes returns the type of the catalogue that has an add-on; empty if none has.
type catalogueTypes func(addon string) v1.CatalogueType

// planFor compares the set with the installations. It plans nothing for an unknown set.
func planFor(wantedSet set, installations []v1.AddonInstallation, catalogues catalogueTypes) plan {
	var result plan
	byName := map[string]*v1.AddonInstallation{}
	for i := range installations {
		byName[installations[i].Name] = &installations[i]
	}
	if wantedSet.frozen != "" { // the existing core installations are the set
		for _, name := range ourNames(byName) {
			result.keep(byName[name])
		}
		return result
	}
	for _, one := range wantedSet.wanted {
		live := byName[one.name]
		if wantedSet.isOfPrevious(live) {
			result.total++
			result.release = append(result.release, live)
			continue
		}
		if wantedSet.keepListed && one.origin == v1.OriginRule && isListed(live) {
			result.keep(live)
			continue
		}
		if live == nil && wantedSet.isElsewhere(one.name) {
			result.total++
			result.taken = append(result.taken, one.name)
			continue
		}
		result.member(one, live, catalogues)
	}
	for _, name := range ourNames(byName) {
		live := byName[name]
		if wantedSet.find(name) != nil {
			continue
		}
		if staysOutsideSet(&wantedSet, live) {
			result.keep(live)
			continue
		}
		if live.DeletionTimestamp.IsZero() {
			result.remove = append(result.remove, live)
			continue
		}
		result.release = append(result.release, live)
	}
	return result
}

// member plans one core add-on of the set.
func (p *plan) member(one wanted, live *v1.AddonInstallation, catalogues catalogueTypes) {
	p.total++
	switch {
	case live != nil && !live.Spec.CoreAddon:
		p.taken = append(p.taken, one.name)
	case live != nil:
		p.members = append(p.members, live)
		p.noteBlocked(live)
		if !isReleased(live) && !isApplied(live, one) {
			p.apply = append(p.apply, change{wanted: one, live: live})
		}
	case !isServed(one, catalogues(one.addon())) && one.origin == v1.OriginList:
		p.unknown = append(p.unknown, one.addon())
	case !isServed(one, catalogues(one.addon())):
		p.missing = append(p.missing, one.addon())
	default:
		p.apply = append(p.apply, change{wanted: one})
	}
}

// keep counts an installation as part of the set, and does not change it.
func (p *plan) keep(live *v1.AddonInstallation) {
	p.total++
	p.members = append(p.members, live)
	p.noteBlocked(live)
}

func (p *plan) noteBlocked(live *v1.AddonInstallation) {
	if !live.DeletionTimestamp.IsZero() {
		p.blocked = append(p.blocked, live)
	}
}

// releasePlan releases all installations: the Cluster is being deleted or does not exist.
func releasePlan(installations []v1.AddonInstallation) plan {
	var result plan
	for i := range installations {
		if slices.Contains(installations[i].Finalizers, v1.FinalizerCoreProtection) {
			result.release = append(result.release, &installations[i])
		}
	}
	return result
}

// staysOutsideSet reports whether an installation stays, since no present list or rule excludes it.
func staysOutsideSet(wantedSet *set, live *v1.AddonInstallation) bool {
	if _, held := wantedSet.held[string(live.Spec.AddonRef.Name)]; held {
		return true
	}
	return wantedSet.keepListed && live.Annotations[v1.AnnotationCoreOrigin] != v1.OriginRule
}

// isListed reports whether an installation comes from a list. Without the list, the rule of the same add-on does not
// remove the list's version and values.
func isListed(live *v1.AddonInstallation) bool {
	return live != nil && isOurs(live) && live.Annotations[v1.AnnotationCoreOrigin] == v1.OriginList
}

// isServed reports whether a catalogue has the add-on. For a rule only Core catalogues count: a Custom one could
// bring its own kube-proxy.
func isServed(one wanted, found v1.CatalogueType) bool {
	return found == v1.CatalogueCore || found != "" && one.origin == v1.OriginList
}

// isOurs reports whether the controller made an installation. Only this controller sets coreAddon; the label or the
// finalizer are checked too, in case admission was off when it was created.
func isOurs(live *v1.AddonInstallation) bool {
	return live.Spec.CoreAddon && (live.Labels[v1.LabelManagedBy] == v1.ManagedByCoreAddons ||
		slices.Contains(live.Finalizers, v1.FinalizerCoreProtection))
}

// isReleased reports whether an installation lost its finalizer while it was being deleted: it can't be added again.
// The installation is recreated after its deletion.
func isReleased(live *v1.AddonInstallation) bool {
	return !live.DeletionTimestamp.IsZero() && !slices.Contains(live.Finalizers, v1.FinalizerCoreProtection)
}

// isForeign reports whether other clients made an installation that has none of this controller's marks.
func isForeign(live *v1.AddonInstallation) bool {
	return !live.Spec.CoreAddon && live.Labels[v1.LabelManagedBy] != v1.ManagedByCoreAddons &&
		!slices.Contains(live.Finalizers, v1.FinalizerCoreProtection)
}

// ourNames are the names of the core installations, sorted.
func ourNames(byName map[string]*v1.AddonInstallation) []string {
	var names []string
	for name, live := range byName {
		if isOurs(live) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
