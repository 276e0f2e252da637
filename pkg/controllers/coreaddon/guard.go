package coreaddon

import (
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// guarded are the removals of a Core set: what is out of rules, list or catalogues goes with its
// cluster's move, and many at a time wait for approval first.
type guarded struct {
	rollout.GuardedRemovals
	// leaving are the namespaces with an installation that is to go; has counts all installations.
	leaving map[string]bool
	has     int
	// judged are the UIDs of installations whose removal was looked at.
	judged map[string]bool
	// approved is the word that it was looked at with; changed says that something else did since.
	approved string
	changed  bool
}

// note how many installations a cluster has, and which are to go.
func (g *guarded) note(namespace string, before, after stood) {
	g.has += after.has - before.has
	g.changed = g.changed || after.has != before.has || !slices.Equal(before.standing.Removals, after.standing.Removals)
	if delete(g.leaving, namespace); len(after.standing.Removals) > 0 {
		g.leaving[namespace] = true
	}
}

// mayRemove says whether a removal was looked at, and does not wait for approval. It is for a copy: the
// maps are replaced, never changed.
func (g guarded) mayRemove(live *v1.AddonInstallation) bool {
	id := string(live.UID)
	return g.judged[id] && !g.Waiting[id]
}

// guard removals, where some came or went. The mutex is held.
func (r *Reconciler) guard(f *setFacts) {
	run, approved := f.run, f.set.Annotations[v1.AnnotationRemovalApproved]
	if !run.guarded.changed && run.guarded.approved == approved {
		return
	}
	var removals []rollout.Removal
	judged := map[string]bool{}
	for _, namespace := range slices.Sorted(maps.Keys(run.guarded.leaving)) {
		one := run.clusters[namespace]
		removals = append(removals, one.standing.Removals...)
		isNew := false
		for _, removal := range one.standing.Removals {
			isNew, judged[removal.ID] = isNew || !run.guarded.judged[removal.ID], true
		}
		if isNew && (one.granted || one.standing.AtOnce) {
			r.staging.wake(namespace)
		}
	}
	shown := run.guarded.Pending
	if run.guarded.judged == nil { // by another process; later on, what the status still shows may be done
		shown = run.shown.Removal
	}
	now := rollout.GuardRemovals(removals, run.guarded.has, shown, approved)
	isSame := maps.Equal(now.Waiting, run.guarded.Waiting)
	run.guarded.GuardedRemovals, run.guarded.judged, run.guarded.approved = now, judged, approved
	if !isSame {
		for _, namespace := range slices.Sorted(maps.Keys(run.guarded.leaving)) {
			found := run.clusters[namespace].stood
			found.standing.Held = found.standing.State == v1.ClusterBehind && found.standing.IsHeldBy(now.Waiting)
			run.put(namespace, run.clusters[namespace].name, found)
			r.staging.touched[namespace] = true // a new cluster may move by now
		}
		r.staging.wakeSet()
	}
	run.guarded.changed = false
}
