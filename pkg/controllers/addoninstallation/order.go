package addoninstallation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// mostAwaited is how many others a message names, and how many can wake the waiting installation: while one of them is
// not ready, changes of the rest can't end the wait.
const mostAwaited = 3

// order is the action of an installation that may have to wait for others.
type order string

const (
	orderNone    order = ""
	orderFirst   order = "first apply"
	orderRemoval order = "removal"
	// orderVersion begins the turn of another version, whose name follows.
	orderVersion order = "version "
)

// orderOf is the first apply, or that of another version. A rollout under way, or one with only other values, is not
// held.
func orderOf(f *facts) order {
	record := f.run.Record()
	switch {
	case f.run.Decision.Do != revision.Begin:
		return orderNone
	case record == nil && f.installation.Status.LastApplied == nil:
		return orderFirst
	case !record.IsApplied():
		return orderNone
	case record.Addon != addonOf(f.installation) || catalogue.Key(record.Version) != catalogue.Key(f.choice.Version.Version):
		return orderVersion + order(f.choice.Version.Version)
	}
	return orderNone
}

// inOrder holds a first apply, and that of another version, while others of the cluster come first.
func (r *Reconciler) inOrder(ctx context.Context, f *facts) *loop.Outcome {
	now := orderOf(f)
	if now == orderNone || now != orderFirst && len(f.installation.Spec.DependsOn) == 0 {
		r.awaiting.forget(client.ObjectKeyFromObject(f.installation))
		return nil
	}
	before, err := r.before(ctx, f, now)
	switch {
	case err != nil:
		return failed(err)
	case before.Held == installation.HeldByNothing:
		return nil
	}
	limit := limit{r.Options.OrderTimeout, r.Options.OrderTimeout - waited(f)}
	isLimited := before.Held == installation.HeldBySlot || before.Held == installation.HeldByDependencies && now != orderFirst
	outcome := loop.Wait(kubermaticv1.ConditionApplied, kubermaticv1.ReasonWaitingForOrder, orderText(before), 0)
	switch {
	case isLimited && r.isOver(ctx, f, now, before, limit):
		return nil
	case before.Held == installation.HeldByCycle:
		outcome.Reason = kubermaticv1.ReasonDependencyCycle
	case before.Held == installation.HeldByMissing:
		outcome.Reason = kubermaticv1.ReasonDependencyMissing
	case isLimited:
		outcome.Message += fmt.Sprintf("; after %s the installation continues without waiting", limit.whole)
		outcome.Recheck = limit.left
	}
	return outcome
}

// removedInOrder holds a removal while dependents of the installation, or installations of later slots, are being
// removed too. A removal that began is not held.
func (r *Reconciler) removedInOrder(ctx context.Context, f *facts) *loop.Outcome {
	if f.memory.released == orderRemoval {
		return nil
	}
	before, err := r.before(ctx, f, orderRemoval)
	if err != nil {
		return failed(err)
	}
	limit := r.removalLimit(f)
	if before.Held == installation.HeldByNothing || r.isOver(ctx, f, orderRemoval, before, limit) {
		f.memory.released = orderRemoval
		return nil
	}
	text := fmt.Sprintf("%s; after %s the installation is removed without waiting", orderText(before), limit.whole)
	return waiting(kubermaticv1.ReasonWaitingForOrder, text, limit.left)
}

// limit is the whole and the remaining time of waiting for others.
type limit struct{ whole, left time.Duration }

// removalLimit limits a removal's wait for others, counted from its beginning. From a cluster that is being deleted the
// time counts from the Cluster's deletion, and the others must not use all of it.
func (r *Reconciler) removalLimit(f *facts) limit {
	whole, since := r.Options.OrderTimeout, removedSince(f)
	if f.cluster.Deleted {
		whole, since = min(whole, r.goingTime()/3), f.cluster.DeletedAt
	}
	return limit{whole, whole - f.run.Now.Sub(since).Abs()}
}

// isOver says whether the time of waiting for others is over, and reports it once.
func (r *Reconciler) isOver(ctx context.Context, f *facts, now order, before installation.Order, limit limit) bool {
	if f.memory.released != now && limit.left > 0 {
		return false
	}
	r.awaiting.forget(client.ObjectKeyFromObject(f.installation))
	if f.memory.released != now && limit.whole > 0 {
		action := "Apply"
		if now == orderRemoval {
			action = "Remove"
		}
		r.report(ctx, f, occasion{corev1.EventTypeWarning, kubermaticv1.EventOrderGivenUp, action},
			fmt.Sprintf("the installation continues after %s although it %s", limit.whole, orderText(before)))
	}
	f.memory.released = now
	return true
}

// waited is how long an installation has waited for its turn: since the transition of condition Applied. The absolute
// difference counts, so that a wrong time in the future does not prolong the wait.
func waited(f *facts) time.Duration {
	applied := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || !installation.IsHeld(applied.Reason) {
		return 0
	}
	return f.run.Now.Sub(applied.LastTransitionTime.Time).Abs()
}

// removedSince is when a removal began; for a protected core add-on, when the protection ended.
func removedSince(f *facts) time.Time {
	blocked := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionDeletionBlocked)
	switch {
	case blocked == nil, !isRemoved(f.installation):
		return f.run.Asked.RemovedSince
	case blocked.Status == metav1.ConditionTrue:
		return f.run.Now
	}
	return blocked.LastTransitionTime.Time
}

// before finds the installations that an installation waits for, in the manager's cache. Without slots and
// dependencies, it reads no others. The wait is noted before they are read: a change in between wakes the installation.
func (r *Reconciler) before(ctx context.Context, f *facts, now order) (installation.Order, error) {
	own := f.installation
	slots, err := r.slots(ctx)
	if err != nil {
		return installation.Order{}, err
	}
	isConcerned := len(own.Spec.DependsOn) > 0 || now == orderFirst && len(slots) > 0
	if now == orderRemoval {
		if isConcerned, err = r.isBefore(ctx, f, slots); err != nil {
			return installation.Order{}, err
		}
	}
	key := client.ObjectKeyFromObject(own)
	if !isConcerned {
		r.awaiting.forget(key)
		return installation.Order{}, nil
	}
	r.awaiting.note(f.of(), key, nil)
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return installation.Order{}, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	found := r.decideOrder(ctx, f, now, installation.NeighbourhoodOf(own, all, slots))
	switch found.Held {
	case installation.HeldByNothing:
		r.awaiting.forget(key)
	case installation.HeldByCycle: // if the cycle is broken elsewhere, the state of the next one in it shows that
		r.awaiting.note(f.of(), key, found.By[1:2])
	default:
		r.awaiting.note(f.of(), key, found.By[:min(len(found.By), mostAwaited)])
	}
	return found, nil
}

func (r *Reconciler) decideOrder(ctx context.Context, f *facts, now order, all installation.Neighbourhood) installation.Order {
	switch now {
	case orderRemoval:
		return all.BeforeRemoval(f.cluster.Deleted)
	case orderFirst:
		return all.BeforeFirstApply()
	}
	return all.BeforeVersion(func(other *kubermaticv1.AddonInstallation) bool { return r.isAboutToMove(ctx, f, other) })
}

// isAboutToMove says whether a dependency is about to change its version, which its next reconciliation will find: one
// edit of catalogues or of the Cluster often changes both.
func (r *Reconciler) isAboutToMove(ctx context.Context, f *facts, other *kubermaticv1.AddonInstallation) bool {
	if other.Spec.ReconcileStrategy == kubermaticv1.ReconcileOnce {
		return false
	}
	entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addonOf(other)})
	if err != nil || entry == nil {
		return false
	}
	installed := resolution.InstalledInStatus(other)
	choice, refusal := resolution.Request{
		Installation: other, Installed: installed, Cluster: f.cluster, AllowPrereleases: r.Options.AllowPrereleases,
	}.Choose(entry)
	return refusal == nil && catalogue.Key(choice.Version.Version) != catalogue.Key(installed)
}

// isBefore says whether any installation of the cluster can come after this one.
func (r *Reconciler) isBefore(
	ctx context.Context, f *facts, slots map[kubermaticv1.AddonName]kubermaticv1.Slot,
) (bool, error) {
	own := f.installation
	if slots[own.Spec.AddonRef.Name] != "" {
		return true, nil
	}
	dependents, err := r.installationsOf(ctx, f.of(), client.MatchingFields{indexDependsOn: own.Name})
	if err != nil {
		return false, fmt.Errorf("listing the installations that depend on installation %q: %w", own.Name, err)
	}
	return len(dependents) > 0, nil
}

// slots are the add-ons that have a slot in their merged catalogue.
func (r *Reconciler) slots(ctx context.Context) (map[kubermaticv1.AddonName]kubermaticv1.Slot, error) {
	list := &kubermaticv1.AddonCatalogueList{}
	err := r.Client.List(ctx, list, client.InNamespace(r.Options.CatalogueNamespace), client.MatchingFields{indexSlot: hasSlot},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the catalogues of add-ons with a slot: %w", err)
	}
	slots := make(map[kubermaticv1.AddonName]kubermaticv1.Slot, len(list.Items))
	for i := range list.Items {
		if merged := &list.Items[i]; r.Marks.Believes(merged) {
			slots[kubermaticv1.AddonName(merged.Name)] = slotOf(merged)
		}
	}
	return slots, nil
}

// slotOf is the slot of a merged catalogue's add-on.
func slotOf(merged *kubermaticv1.AddonCatalogue) kubermaticv1.Slot {
	if len(merged.Spec.Addons) != 1 {
		return ""
	}
	return merged.Spec.Addons[0].Slot
}

// orderText says which installations are awaited.
func orderText(before installation.Order) string {
	switch before.Held {
	case installation.HeldByCycle:
		return fmt.Sprintf("depends on itself: %s: remove one of them from spec.dependsOn", installation.CycleText(before.By))
	case installation.HeldByMissing:
		return fmt.Sprintf("depends on %s, which this cluster does not have: create it, or remove it from spec.dependsOn", awaitedText(before.By))
	case installation.HeldByDependencies:
		return fmt.Sprintf("waits until %s, which it depends on, is Ready with its desired version", awaitedText(before.By))
	case installation.HeldByRemovals:
		return fmt.Sprintf("waits for the removal of %s, which depends on it or has a later slot", awaitedText(before.By))
	}
	return fmt.Sprintf("waits for %s, which has an earlier slot", awaitedText(before.By))
}

// awaitedText names those that can wake the waiting installation, without the number of the rest: it would change too
// often.
func awaitedText(names []string) string {
	quoted := make([]string, 0, mostAwaited)
	for _, name := range names[:min(len(names), mostAwaited)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	named := "installation " + strings.Join(quoted, ", ")
	if len(names) > mostAwaited {
		named += " and others"
	}
	return named
}
