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
	"github.com/trellis-addons/trellis/pkg/catalogue"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// mostAwaited is how many others a message names, and how many can wake who waits for them: while
// one of them is not ready, nothing that happens to the rest lets it go on.
const mostAwaited = 3

// turn is what an installation is about to do that others may come before.
type turn string

const (
	turnNone    turn = ""
	turnFirst   turn = "first apply"
	turnRemoval turn = "removal"
	// turnVersion begins the turn of another version, whose name follows.
	turnVersion turn = "version "
)

// turnOf is the first apply, or that of another version. What is under way is not held any more,
// nor what has only other values.
func turnOf(f *facts) turn {
	record := f.pass.Record()
	switch {
	case f.pass.Decision.Do != revision.Begin:
		return turnNone
	case record == nil && f.installation.Status.LastApplied == nil:
		return turnFirst
	case !record.IsApplied():
		return turnNone
	case record.Addon != addonOf(f.installation) || catalogue.Key(record.Version) != catalogue.Key(f.choice.Version.Version):
		return turnVersion + turn(f.choice.Version.Version)
	}
	return turnNone
}

// inTurn holds a first apply, and that of another version, while others of the cluster come first.
func (r *Reconciler) inTurn(ctx context.Context, f *facts) loop.Outcome {
	now := turnOf(f)
	if now == turnNone || now != turnFirst && len(f.installation.Spec.DependsOn) == 0 {
		r.awaiting.forget(client.ObjectKeyFromObject(f.installation))
		return nil
	}
	before, err := r.before(ctx, f, now)
	switch {
	case err != nil:
		return failed(err)
	case before.Held == order.HeldByNothing:
		return nil
	}
	limit := limit{r.Options.OrderTimeout, r.Options.OrderTimeout - waited(f)}
	isLimited := before.Held == order.HeldBySlot || before.Held == order.HeldByDependencies && now != turnFirst
	outcome := loop.Waiting{Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonWaitingForOrder, Message: orderText(before)}
	switch {
	case isLimited && r.isOver(ctx, f, now, before, limit):
		return nil
	case before.Held == order.HeldByCycle:
		outcome.Reason = kubermaticv1.ReasonDependencyCycle
	case before.Held == order.HeldByMissing:
		outcome.Reason = kubermaticv1.ReasonDependencyMissing
	case isLimited:
		outcome.Message += fmt.Sprintf("; it goes on without that after %s", limit.whole)
		outcome.Recheck = limit.left
	}
	return outcome
}

// removedInTurn holds a removal while what depends on the installation, or comes after it by slot,
// is being removed too. A removal that began is not held any more.
func (r *Reconciler) removedInTurn(ctx context.Context, f *facts) loop.Outcome {
	if f.memory.letGo == turnRemoval {
		return nil
	}
	before, err := r.before(ctx, f, turnRemoval)
	if err != nil {
		return failed(err)
	}
	limit := r.removalLimit(f)
	if before.Held == order.HeldByNothing || r.isOver(ctx, f, turnRemoval, before, limit) {
		f.memory.letGo = turnRemoval
		return nil
	}
	text := fmt.Sprintf("%s; it is removed without that after %s", orderText(before), limit.whole)
	return waiting(kubermaticv1.ReasonWaitingForOrder, text, limit.left)
}

// limit is for how long others are waited for, and what is left of that.
type limit struct{ whole, left time.Duration }

// removalLimit is for how long a removal waits for others, since it began. From a cluster that goes there
// is little time, which counts from then, and what comes before must not take all of it.
func (r *Reconciler) removalLimit(f *facts) limit {
	whole, since := r.Options.OrderTimeout, removedSince(f)
	if f.cluster.Deleted {
		whole, since = min(whole, r.goingTime()/3), f.cluster.DeletedAt
	}
	return limit{whole, whole - f.pass.Now.Sub(since).Abs()}
}

// isOver says whether the time for which others are waited for is over, and tells that once.
func (r *Reconciler) isOver(ctx context.Context, f *facts, now turn, before order.Order, limit limit) bool {
	if f.memory.letGo != now && limit.left > 0 {
		return false
	}
	r.awaiting.forget(client.ObjectKeyFromObject(f.installation))
	if f.memory.letGo != now && limit.whole > 0 {
		action := "Apply"
		if now == turnRemoval {
			action = "Remove"
		}
		r.report(ctx, f, occasion{corev1.EventTypeWarning, kubermaticv1.EventOrderGivenUp, action},
			fmt.Sprintf("goes on after %s although it %s", limit.whole, orderText(before)))
	}
	f.memory.letGo = now
	return true
}

// waited is for how long an installation waits for its turn: since condition Applied says so. The
// distance counts, so that nothing waits for a time to come that is on record by mistake.
func waited(f *facts) time.Duration {
	applied := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || !order.IsHeld(applied.Reason) {
		return 0
	}
	return f.pass.Now.Sub(applied.LastTransitionTime.Time).Abs()
}

// removedSince is when a removal began; of a core add-on that was protected, when that ended.
func removedSince(f *facts) time.Time {
	blocked := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionDeletionBlocked)
	switch {
	case blocked == nil, !isRemoved(f.installation):
		return f.pass.Asked.RemovedSince
	case blocked.Status == metav1.ConditionTrue:
		return f.pass.Now
	}
	return blocked.LastTransitionTime.Time
}

// before finds whom an installation waits for, all of it in the manager's cache. Where neither
// slots nor dependencies are about, the others are not looked at. Who waits is noted before they
// are read: what changes meanwhile wakes it.
func (r *Reconciler) before(ctx context.Context, f *facts, now turn) (order.Order, error) {
	own := f.installation
	slots, err := r.slots(ctx)
	if err != nil {
		return order.Order{}, err
	}
	isConcerned := len(own.Spec.DependsOn) > 0 || now == turnFirst && len(slots) > 0
	if now == turnRemoval {
		if isConcerned, err = r.isBefore(ctx, f, slots); err != nil {
			return order.Order{}, err
		}
	}
	key := client.ObjectKeyFromObject(own)
	if !isConcerned {
		r.awaiting.forget(key)
		return order.Order{}, nil
	}
	r.awaiting.note(f.of(), key, nil)
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return order.Order{}, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	found := r.decideOrder(ctx, f, now, order.NeighbourhoodOf(own, all, slots))
	switch found.Held {
	case order.HeldByNothing:
		r.awaiting.forget(key)
	case order.HeldByCycle: // the next one in it tells, by its own state, when the cycle is broken further on
		r.awaiting.note(f.of(), key, found.By[1:2])
	default:
		r.awaiting.note(f.of(), key, found.By[:min(len(found.By), mostAwaited)])
	}
	return found, nil
}

func (r *Reconciler) decideOrder(ctx context.Context, f *facts, now turn, all order.Neighbourhood) order.Order {
	switch now {
	case turnRemoval:
		return all.BeforeRemoval(f.cluster.Deleted)
	case turnFirst:
		return all.BeforeFirstApply()
	}
	return all.BeforeVersion(func(other *kubermaticv1.AddonInstallation) bool { return r.isAboutToMove(ctx, f, other) })
}

// isAboutToMove says whether a dependency is to have another version than it has, which its own
// next pass will find: one edit of catalogues or of the Cluster often moves both.
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

// isBefore says whether anything of the cluster can come after an installation.
func (r *Reconciler) isBefore(
	ctx context.Context, f *facts, slots map[kubermaticv1.AddonName]kubermaticv1.Slot,
) (bool, error) {
	own := f.installation
	if slots[own.Spec.AddonRef.Name] != "" {
		return true, nil
	}
	dependents, err := r.installationsOf(ctx, f.of(), client.MatchingFields{indexDependsOn: own.Name})
	if err != nil {
		return false, fmt.Errorf("listing what depends on installation %q: %w", own.Name, err)
	}
	return len(dependents) > 0, nil
}

// slots are those of add-ons, by what the merged catalogues say that have one.
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

// orderText says whom an installation waits for.
func orderText(before order.Order) string {
	switch before.Held {
	case order.HeldByCycle:
		return fmt.Sprintf("depends on itself: %s: take one of them out of spec.dependsOn", order.CycleText(before.By))
	case order.HeldByMissing:
		return fmt.Sprintf("depends on %s, which this cluster does not have: make it, or take it out of spec.dependsOn", awaitedText(before.By))
	case order.HeldByDependencies:
		return fmt.Sprintf("waits until %s, which it depends on, is Ready with the version that it is to have", awaitedText(before.By))
	case order.HeldByRemovals:
		return fmt.Sprintf("waits for the removal of %s, which depends on it or has a later slot", awaitedText(before.By))
	}
	return fmt.Sprintf("waits for %s, which has an earlier slot", awaitedText(before.By))
}

// awaitedText names those that can wake who waits, and no number of the rest: it would be wrong
// with each of them.
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
