package coreaddon

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// compare plans the pass: the set against the existing installations.
func (r *Reconciler) compare(ctx context.Context, f *facts) loop.Outcome {
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
	if f.terminating { // the namespace's next event wakes a pass
		f.plan.apply = nil
	}
	if err := r.noteGates(ctx, f); err != nil {
		return failed(err)
	}
	return nil
}

// mergedOf is the merged catalogue of an add-on; nil where there is none.
func (r *Reconciler) mergedOf(ctx context.Context, addon string) (*v1.AddonCatalogue, error) {
	found := &v1.AddonCatalogue{} // shared with the cache, and only read
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

// plan is what one pass is to do, and what it found.
type plan struct {
	// apply are created, or updated.
	apply []change
	// release lose their finalizer: they are being deleted, and may go.
	release []*v1.AddonInstallation
	// remove are out of the set: they lose their finalizer and are deleted.
	remove []*v1.AddonInstallation
	// blocked are being deleted while they are in the set.
	blocked []*v1.AddonInstallation
	// taken are names of the set that another's installation has.
	taken []string
	// missing are add-ons of rules that no Core catalogue has, unknown those of the list that none has.
	missing, unknown []string
	// members are the installations of the set that exist.
	members []*v1.AddonInstallation
	total   int
}

// change is one core add-on and the installation that it has; nil where it has none.
type change struct {
	wanted wanted
	live   *v1.AddonInstallation
	// stays says, under a Core set, that it changes nothing in the user cluster.
	stays bool
}

// catalogueTypes says what type of catalogue has an add-on; empty for none.
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
		if wantedSet.isFormers(live) {
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

// keep leaves an installation as it is, as one of the set.
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

// releasePlan releases all: the Cluster is deleted or gone.
func releasePlan(installations []v1.AddonInstallation) plan {
	var result plan
	for i := range installations {
		if slices.Contains(installations[i].Finalizers, v1.FinalizerCoreProtection) {
			result.release = append(result.release, &installations[i])
		}
	}
	return result
}

// staysOutsideSet says whether an installation stays, since nothing says that it is unwanted.
func staysOutsideSet(wantedSet *set, live *v1.AddonInstallation) bool {
	if _, held := wantedSet.held[string(live.Spec.AddonRef.Name)]; held {
		return true
	}
	return wantedSet.keepListed && live.Annotations[v1.AnnotationCoreOrigin] != v1.OriginRule
}

// isListed says whether a list brought an installation. Without the list, the rule of the same
// add-on does not remove the list's version and values.
func isListed(live *v1.AddonInstallation) bool {
	return live != nil && isOurs(live) && live.Annotations[v1.AnnotationCoreOrigin] == v1.OriginList
}

// isServed says whether a catalogue has what is wanted. A rule takes its add-on from Core
// catalogues only: a Custom one could bring in a kube-proxy of its own.
func isServed(one wanted, found v1.CatalogueType) bool {
	return found == v1.CatalogueCore || found != "" && one.origin == v1.OriginList
}

// isOurs says whether the controller made an installation. Only we set coreAddon; the label or the
// finalizer are checked too, in case there was no admission when it was made.
func isOurs(live *v1.AddonInstallation) bool {
	return live.Spec.CoreAddon && (live.Labels[v1.LabelManagedBy] == v1.ManagedByCoreAddons ||
		slices.Contains(live.Finalizers, v1.FinalizerCoreProtection))
}

// isReleased says whether an installation lost its finalizer while it was being deleted: it can't
// get it back. It is made again once it is gone.
func isReleased(live *v1.AddonInstallation) bool {
	return !live.DeletionTimestamp.IsZero() && !slices.Contains(live.Finalizers, v1.FinalizerCoreProtection)
}

// isForeign says whether others made an installation, and nothing of ours is on it.
func isForeign(live *v1.AddonInstallation) bool {
	return !live.Spec.CoreAddon && live.Labels[v1.LabelManagedBy] != v1.ManagedByCoreAddons &&
		!slices.Contains(live.Finalizers, v1.FinalizerCoreProtection)
}

// ourNames are those of the core installations, sorted.
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
