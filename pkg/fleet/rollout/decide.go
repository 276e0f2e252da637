package rollout

import (
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Decision is the next step of a seed.
type Decision struct {
	// Groups are the states of the strategy's groups.
	Groups []kubermaticv1.GroupState
	// Open is the group whose clusters move, or NoGroup.
	Open int
	// Move are the clusters that may be written now, in order. The caller Puts each as Moving, or as sick and Holds,
	// before it decides again.
	Move []string
	// Reason of condition Ready, and its message: Complete makes it True, and so does NoClusterSelected on a seed, since
	// other seeds may have the clusters.
	Reason, Message string
}

// Decide decides which clusters of a seed may move now. All clusters must be in the Tally, with the groups that this
// strategy gives them: after a start, nothing is decided before.
func Decide(strategy Strategy, tally *Tally, gate Allowance) Decision {
	counts, may := tally.GroupCounts(strategy), gate.permit(strategy)
	may.excesses, may.others, may.listed = excesses(strategy, counts), tally.others, func() []kubermaticv1.SetClusterStatus {
		return tally.Troubled(strategy)
	}
	found := evaluate(strategy, counts, tally.Counts(), may)
	decision := Decision{Groups: found.states, Open: found.open, Reason: found.reason, Message: found.message}
	for i := range found.groups {
		decision.Move = append(decision.Move, tally.turns(i, strategy.Groups[i], i == found.open)...)
	}
	if found.open == NoGroup {
		return decision
	}
	group := &tally.groups[found.open]
	if group.lostPlaces() > 0 && tally.total.Moving == 0 && len(decision.Move) == 0 {
		decision.Message += fmt.Sprintf("; %s of this group can't be reached since their move and use up maxConcurrency: nothing more moves "+
			"in the group until one is reachable again or deleted, or maxConcurrency is raised", text.Count(group.lost, "cluster"))
	}
	if group.held > 0 && tally.total.Moving == 0 && len(decision.Move) == 0 {
		decision.Reason = kubermaticv1.ReasonRemovalNeedsApproval
		decision.Message = fmt.Sprintf("removals in %s of group %q wait for annotation %s",
			text.Count(group.held, "cluster"), strategy.Groups[found.open].Name, kubermaticv1.AnnotationRemovalApproved)
	}
	return decision
}

// turns are the clusters of a group that may be written now. In a group that is not open, nothing is left to move, so
// these are sick clusters that lack something. A moving cluster is written again in its own place, within the present
// number of places, which may be smaller. A cluster that is sick for a shared cause counts as failed, and is not
// written.
func (t *Tally) turns(at int, group Group, isOpen bool) []string {
	var found []string
	g := &t.groups[at]
	take := func(some []*entry) {
		for _, e := range some {
			found = append(found, e.cluster)
		}
	}
	places := group.MaxConcurrency.Places(int(g.counts.Selected)) - int(g.counts.Moving) - g.holding - g.lostPlaces()
	if isOpen {
		take(g.again.first(places + len(g.again.entries)))
		behind := g.behind.first(places)
		take(behind)
		places -= len(behind)
	}
	take(g.late.firstOf(places, func(e *entry) bool { return !t.causes.isShared(e.status.Cause) }))
	return found
}

// lostPlaces is the number of places that clusters take which were cut off after their move: all but one, minus as
// many as have the revision. So no owner can block a group alone, and a revision that cuts clusters off stops
// automatically.
func (g *groupTally) lostPlaces() int { return max(g.lost-int(having(g.counts))-1, 0) }

// permit returns the groups that may open by the value of annotation gate.
func (a Allowance) permit(strategy Strategy) permit {
	switch {
	case a == ByRule:
		return permit{groups: len(strategy.Groups), approved: NoGroup, evidence: true}
	case a == FirstOnly && strategy.Groups[0].Start == kubermaticv1.StartAutomatic:
		return permit{groups: 1}
	}
	return permit{groups: max(int(a), 0)}
}
