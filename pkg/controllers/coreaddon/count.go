package coreaddon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// countAll counts every cluster in the tally, and drops those that do not exist.
func (r *Reconciler) countAll(ctx context.Context, f *setFacts, found []target.Description, installations []v1.AddonInstallation) {
	asking := map[cluster.Key][]v1.AddonInstallation{}
	for i := range installations {
		of := cluster.KeyOf(target.InstalledIn(&installations[i]))
		asking[of] = append(asking[of], installations[i])
	}
	claimed := map[cluster.Key]int{}
	for i := range found {
		for _, by := range cluster.KeysOf(found[i].Ref) {
			claimed[by]++
		}
	}
	seen := map[cluster.Key]bool{}
	for i := range found {
		if of := cluster.KeyOf(found[i].Ref); r.isCounted(found[i]) && claimed[of] == 1 {
			seen[of] = true
			own := asking[of]
			if named := cluster.KeysOf(found[i].Ref)[1:]; len(named) > 0 && len(asking[named[0]]) > 0 {
				own = append(slices.Clip(own), asking[named[0]]...)
			}
			r.countIn(ctx, f, found[i], own)
		}
	}
	for of := range f.run.clusters {
		if !seen[of] {
			f.run.drop(of)
		}
	}
}

// count counts all clusters if the set or its dependencies changed, otherwise those that were reconciled. The caches
// are read under the mutex, so that concurrent writes count.
func (r *Reconciler) count(ctx context.Context, f *setFacts) *loop.Outcome {
	s := &r.staging
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if f.run.counted {
		return r.countTouched(ctx, f)
	}
	found, err := r.Finder.List(ctx)
	if err != nil {
		return failed(err)
	}
	var list v1.AddonInstallationList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing installations: %w", err))
	}
	r.countAll(ctx, f, found, list.Items)
	f.run.counted = true
	clear(s.touched)
	for of, one := range f.run.clusters {
		if one.repairs || one.IsGranted() {
			s.wake(of)
		}
	}
	return nil
}

// countTouched counts the clusters that were reconciled.
func (r *Reconciler) countTouched(ctx context.Context, f *setFacts) *loop.Outcome {
	for of := range r.staging.touched {
		asked := cluster.Requested(reconcile.Request{NamespacedName: of})
		found, err := r.Finder.Find(ctx, asked)
		if isUnknown(err) || err == nil && (!r.isCounted(found) || !cluster.IsAskedFor(asked, found)) {
			f.run.drop(of)
			delete(r.staging.touched, of)
			continue
		}
		if err != nil {
			return failed(err)
		}
		var list v1.AddonInstallationList
		if err := r.Client.List(ctx, &list, cluster.InstallationsOf(found.Ref), client.UnsafeDisableDeepCopy); err != nil {
			return failed(fmt.Errorf("listing the installations of namespace %q: %w", found.Namespace, err))
		}
		before := f.run.clusters[of]
		isNew, wasAtOnce := before == nil, before != nil && before.AtOnce && !before.waits
		r.countIn(ctx, f, found, cluster.OnlyOf(found.Ref, list.Items))
		delete(r.staging.touched, of)
		one := f.run.clusters[of]
		if one.waits = false; isNew || one.AtOnce && !wasAtOnce {
			r.staging.wake(of)
		}
	}
	return nil
}

// minimalRest is the minimal delay before a reconciliation that only the passing of time requires.
const minimalRest = 10 * time.Millisecond

func isUnknown(err error) bool {
	_, unknown := errors.AsType[*cluster.UnknownError](err)
	return unknown
}

// isCounted reports whether a cluster is one to count.
func (r *Reconciler) isCounted(found target.Description) bool {
	return found.Namespace != "" && !found.Deleted && cluster.BelongsTo(found, r.Options.WorkerName)
}

// countIn determines the state of a cluster, and counts it. The caller holds the mutex.
func (r *Reconciler) countIn(ctx context.Context, f *setFacts, found target.Description, cached []v1.AddonInstallation) {
	run, now, of := f.run, r.Clock.Now(), cluster.KeyOf(found.Ref)
	wants := setFor(found, run.offers.list, run.seed)
	wants.elsewhere = r.elsewhere(ctx, found.Ref)
	at := run.placeOf(found, wants, r.staging.overlaid(of, cached))
	made := stageFor(run.offers, at)
	about := waves.Facts{
		Presence: waves.Present, Labels: cluster.Labels(found, run.seed), Created: made.age(&at), Mine: made.mine,
		Changes: made.changes, Removals: made.removals, Blocked: made.blocked, AtOnce: made.unfit,
		LeftOut: run.leaveOut.Has(found.LongName()),
	}
	one := run.known(found.Ref)
	switch {
	case one.closed:
		about.Away = v1.ReasonNamespaceTerminating
	case found.Paused:
		about.Away = v1.ReasonPaused
	case found.KubernetesVersion == "" || !found.APIServerUp:
		about.Away = v1.ReasonClusterNotReady
	}
	status := waves.ClusterStatusOf(about, waves.Course{
		Strategy: run.strategy, StartedAt: run.startedAt, Now: now, Waiting: run.guard.Waiting,
		Halted: waves.IsHalted(&run.shown, run.revision),
	})
	one.repairs = len(made.hold.apply) > 0
	one.SetStatus(status, r.staging.written.UnknownSince(of), now)
	if !one.IsGranted() {
		delete(run.granted, of)
	}
	run.guard.Note(one.name, waves.Holding{Installations: len(made.mine), Keep: made.keeps}, status.Removals)
	run.tally.Put(one.name, one.ClusterStatus.ClusterStatus)
	if !one.Next.IsZero() { // also if it is unchanged: an event since then may have used the wake-up
		r.staging.wakeAfter(of, max(one.Next.Sub(now), minimalRest))
	}
}

// known is the entry of a cluster in the tally. An entry for a previous KKP Cluster of the namespace, with another name, is dropped.
func (r *running) known(ref target.Ref) *known {
	of, name := cluster.KeyOf(ref), ref.LongName()
	one := r.clusters[of]
	if one != nil && one.name != name {
		r.drop(of)
		one = nil
	}
	if one == nil {
		one = &known{name: name}
		r.clusters[of], r.keys[name] = one, of
	}
	return one
}

// drop removes a cluster that is deleted or unknown from the count: nothing in it changes.
func (r *running) drop(of cluster.Key) {
	if one := r.clusters[of]; one != nil {
		r.guard.Note(one.name, waves.Holding{}, nil)
		delete(r.clusters, of)
		delete(r.granted, of)
		delete(r.keys, one.name)
		r.tally.Drop(one.name)
	}
}

// decide selects the clusters that may move now, and wakes them. A paused set grants nothing.
func (r *Reconciler) decide(_ context.Context, f *setFacts) *loop.Outcome {
	s := &r.staging
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r.guard(f)
	gate, err := rollout.ReadGate(f.set.Annotations[v1.AnnotationGate], f.run.revision)
	f.gateProblem = err
	f.run.decision = rollout.Decide(f.run.strategy, f.run.tally, gate)
	if f.run.decision.Reason == v1.ReasonHalted { // each time: a write that was under way at the start of the halt may have failed
		r.revoke(f.run)
	}
	if f.run.paused {
		return nil
	}
	for _, name := range f.run.decision.Move {
		of := f.run.keys[name]
		one := f.run.clusters[of]
		one.Grant(r.Clock.Now())
		f.run.granted[of] = true
		f.run.tally.Put(name, one.ClusterStatus.ClusterStatus)
		s.wake(of)
	}
	if len(f.run.decision.Move) > 0 {
		f.run.decision = rollout.Decide(f.run.strategy, f.run.tally, gate)
	}
	return nil
}

// revoke revokes the places of clusters to which nothing was written yet. The caller holds the mutex.
func (r *Reconciler) revoke(run *running) {
	for of := range run.granted {
		if run.clusters[of].Revoke() {
			delete(run.granted, of)
			r.staging.touched[of] = true
			r.staging.wakeSet()
		}
	}
}

// showSet writes the status if it differs, but not more often than the interval allows, and reports the changes.
func (r *Reconciler) showSet(ctx context.Context, f *setFacts) *loop.Outcome {
	s := &r.staging
	s.mutex.Lock()
	shown := waves.Shown{
		Generation: f.set.Generation, Catalogues: f.catalogues, Revision: f.run.revision, StartedAt: f.run.startedAt,
		Before: f.run.shown.Conditions,
	}
	shown.Reason, shown.Message = f.readyOf()
	if !f.set.DeletionTimestamp.IsZero() {
		shown.DeletionBlocked = fmt.Sprintf("the set is being deleted without annotation %s: %s: it stays in use until it has this annotation",
			v1.AnnotationConfirmDeletion, f.set.Name)
	}
	wanted := waves.StatusOf(shown, f.run.tally, f.run.strategy, f.run.decision)
	wanted.Removal = f.run.guard.Pending.DeepCopy()
	before := f.run.shown
	s.mutex.Unlock()
	if equality.Semantic.DeepEqual(before, *wanted) {
		return &loop.Outcome{Kind: loop.Done}
	}
	if wait := f.run.writes.Wait(r.Clock.Now()); wait > 0 {
		return &loop.Outcome{Kind: loop.Done, Recheck: wait}
	}
	if err := waves.WriteStatus(ctx, r.Client, fieldOwner, f.set, wanted); err != nil {
		return failed(err)
	}
	s.mutex.Lock()
	f.run.shown = *wanted
	s.mutex.Unlock()
	waves.Announce(r.Recorder, f.set, &before, wanted)
	return &loop.Outcome{Kind: loop.Done}
}

// readyOf is the reason and message of condition Ready: the worst finding.
func (f *setFacts) readyOf() (reason, message string) {
	decided := f.run.decision
	switch {
	case f.invalid != nil:
		return v1.ReasonInvalid, f.invalid.Error() + "; the last valid spec stays in use"
	case f.run.paused:
		return v1.ReasonPaused, "only new clusters get core add-ons; status.pending lists the changes that wait"
	case f.gateProblem != nil && decided.Reason != v1.ReasonComplete:
		return v1.ReasonHalted, f.gateProblem.Error()
	}
	reason, message = f.run.guard.Ready(decided)
	return cmp.Or(reason, v1.ReasonRollingOut), text.Message(message)
}
