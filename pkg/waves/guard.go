package waves

import (
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// Guard holds removals of a set back until they were looked at together: many at a time wait for
// approval. The zero value guards nothing yet.
type Guard struct {
	rollout.GuardedRemovals
	// leaving are the removals, by cluster, in the caller's word for it; has is what the set has and keeps there,
	// and all the sums of that.
	leaving map[string][]rollout.Removal
	has     map[string]Holding
	all     rollout.Holdings
	// clusters are those with a removal that waits, in order.
	clusters []string
	// judged are the IDs of removals that were looked at; nil: none were, by this process.
	judged map[string]bool
	// approved is the word that they were looked at with; changed says that they changed since.
	approved string
	changed  bool
}

// Holding is what a set has in one cluster.
type Holding struct {
	// Installations of the set.
	Installations int
	// Keep are the items that stay, or are to be made. It is shared among clusters, and doesn't change.
	Keep []string
}

// Note what a set has in a cluster, and which installations are to go.
func (g *Guard) Note(cluster string, has Holding, removals []rollout.Removal) {
	if g.has == nil {
		g.has, g.leaving, g.all.Keep = map[string]Holding{}, map[string][]rollout.Removal{}, map[string]int{}
	}
	before := g.has[cluster]
	isKept := slices.Equal(before.Keep, has.Keep)
	g.changed = g.changed || has.Installations != before.Installations || !isKept || !slices.Equal(removals, g.leaving[cluster])
	g.all.Installations += has.Installations - before.Installations
	if !isKept {
		for _, item := range before.Keep {
			if g.all.Keep[item]--; g.all.Keep[item] == 0 {
				delete(g.all.Keep, item)
			}
		}
		for _, item := range has.Keep {
			g.all.Keep[item]++
		}
	}
	if g.has[cluster] = has; has.Installations == 0 && len(has.Keep) == 0 {
		delete(g.has, cluster)
	}
	if g.leaving[cluster] = removals; len(removals) == 0 {
		delete(g.leaving, cluster)
	}
}

// Allowed says whether an installation may be removed: its removal was looked at, and does not wait
// for approval. It stays as it is when the guard looks again.
func (g *Guard) Allowed() func(live *v1.AddonInstallation) bool {
	judged, waiting := g.judged, g.Waiting
	return func(live *v1.AddonInstallation) bool { return judged[string(live.UID)] && !waiting[string(live.UID)] }
}

// Judge the removals where something changed. Looked are the clusters with one that it had not
// looked at, held those that have to wait, or have not any more. Shown is what a status shows that
// an earlier process wrote: later on, that may be done.
func (g *Guard) Judge(shown *v1.PendingRemoval, approved string) (looked, held []string) {
	if g.judged != nil && !g.changed && g.approved == approved {
		return nil, nil
	}
	last := g.GuardedRemovals
	if g.judged == nil {
		last = rollout.GuardedRemovals{Pending: shown}
	}
	before, waited := g.judged, g.Waiting
	g.judged, g.approved, g.changed = map[string]bool{}, approved, false
	var removals []rollout.Removal
	clusters := slices.Sorted(maps.Keys(g.leaving))
	for _, cluster := range clusters {
		isNew := false
		for _, removal := range g.leaving[cluster] {
			removals = append(removals, removal)
			isNew, g.judged[removal.ID] = isNew || !before[removal.ID], true
		}
		if isNew {
			looked = append(looked, cluster)
		}
	}
	g.GuardedRemovals = rollout.GuardRemovals(removals, g.all, last, approved)
	g.clusters = nil
	for _, cluster := range clusters {
		if slices.ContainsFunc(g.leaving[cluster], func(one rollout.Removal) bool { return g.Covered[one.ID] }) {
			g.clusters = append(g.clusters, cluster)
		}
	}
	if g.Pending != nil {
		g.Pending.Clusters = g.clusters[:min(len(g.clusters), rollout.RemovalClusters)]
	}
	for _, cluster := range clusters {
		if slices.ContainsFunc(g.leaving[cluster], func(one rollout.Removal) bool { return waited[one.ID] != g.Waiting[one.ID] }) {
			held = append(held, cluster)
		}
	}
	return looked, held
}

// Ready gives reason and message of condition Ready, as decided, where removals wait: in which clusters, and who may let them go.
func (g *Guard) Ready(decided rollout.Decision) (reason, message string) {
	if len(g.Waiting) > 0 && (decided.Reason == v1.ReasonComplete || decided.Reason == v1.ReasonRemovalNeedsApproval) {
		return v1.ReasonRemovalNeedsApproval, rollout.WaitingText(len(g.Waiting), g.clusters) +
			"; annotation " + v1.AnnotationRemovalApproved + " of the set on the master approves that"
	}
	return decided.Reason, decided.Message
}

// Lift the guard: what is to go may go. Held are the clusters that waited.
func (g *Guard) Lift() (held []string) {
	for _, cluster := range slices.Sorted(maps.Keys(g.leaving)) {
		if slices.ContainsFunc(g.leaving[cluster], func(one rollout.Removal) bool { return g.Waiting[one.ID] }) {
			held = append(held, cluster)
		}
	}
	g.GuardedRemovals, g.judged, g.changed = rollout.GuardedRemovals{}, map[string]bool{}, true
	return held
}
