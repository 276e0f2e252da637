package waves

import (
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// Guard delays removals of a set until they were evaluated together: many at a time wait for approval. The zero value
// has evaluated none.
type Guard struct {
	rollout.GuardedRemovals
	// leaving are the removals, by the caller's name of the cluster; has are the set's installations there, and all is
	// their sum.
	leaving map[string][]rollout.Removal
	has     map[string]Holding
	all     rollout.Holdings
	// clusters are those with a waiting removal, in order.
	clusters []string
	// evaluated are the IDs of removals that this process has evaluated; nil if none.
	evaluated map[string]bool
	// approved is the token of the last evaluation; changed says that the removals changed since.
	approved string
	changed  bool
}

// Holding are the installations of a set in one cluster.
type Holding struct {
	// Installations is their number.
	Installations int
	// Keep are the items that stay, or will be created. It is shared among clusters, and doesn't change.
	Keep []string
}

// Note stores a set's installations in a cluster, and which of them are to be removed.
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

// Allowed returns a function that reports whether an installation may be removed: its removal was evaluated, and does
// not wait for approval. The function keeps its answers when the guard evaluates again.
func (g *Guard) Allowed() func(live *v1.AddonInstallation) bool {
	evaluated, waiting := g.evaluated, g.Waiting
	return func(live *v1.AddonInstallation) bool {
		return evaluated[string(live.UID)] && !waiting[string(live.UID)]
	}
}

// Evaluate evaluates the removals if something changed. Result looked has the clusters with a newly evaluated removal,
// and held the clusters that have to wait, or no longer have to. Argument shown is the status of an earlier process,
// which may be outdated later.
func (g *Guard) Evaluate(shown *v1.PendingRemoval, approved string) (looked, held []string) {
	if g.evaluated != nil && !g.changed && g.approved == approved {
		return nil, nil
	}
	last := g.GuardedRemovals
	if g.evaluated == nil {
		last = rollout.GuardedRemovals{Pending: shown}
	}
	before, waited := g.evaluated, g.Waiting
	g.evaluated, g.approved, g.changed = map[string]bool{}, approved, false
	var removals []rollout.Removal
	clusters := slices.Sorted(maps.Keys(g.leaving))
	for _, cluster := range clusters {
		isNew := false
		for _, removal := range g.leaving[cluster] {
			removals = append(removals, removal)
			isNew, g.evaluated[removal.ID] = isNew || !before[removal.ID], true
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

// Ready returns reason and message of condition Ready: the decided ones, or those about waiting removals and how to
// approve them.
func (g *Guard) Ready(decided rollout.Decision) (reason, message string) {
	if len(g.Waiting) > 0 && (decided.Reason == v1.ReasonComplete || decided.Reason == v1.ReasonRemovalNeedsApproval) {
		return v1.ReasonRemovalNeedsApproval, rollout.WaitingText(len(g.Waiting), g.clusters) +
			"; annotation " + v1.AnnotationRemovalApproved + " of the set on the master approves the removals"
	}
	return decided.Reason, decided.Message
}

// Lift ends the guard: all removals are allowed. Result held are the clusters that waited.
func (g *Guard) Lift() (held []string) {
	for _, cluster := range slices.Sorted(maps.Keys(g.leaving)) {
		if slices.ContainsFunc(g.leaving[cluster], func(one rollout.Removal) bool { return g.Waiting[one.ID] }) {
			held = append(held, cluster)
		}
	}
	g.GuardedRemovals, g.evaluated, g.changed = rollout.GuardedRemovals{}, map[string]bool{}, true
	return held
}
