package rollout

import (
	"fmt"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// permit is what may open beside the rule of order.
type permit struct {
	// groups is how many may open, by the master.
	groups int
	// approved is the last group that annotation approve opens, or NoGroup.
	approved int
	// evidence: who asks judges evidence, and approvals.
	evidence bool
	// unknown is how many seeds' clusters are not known: they may be behind in any group.
	unknown int
	// excesses are, by group, which failures are too many; nil: none are.
	excesses []*excess
}

// excess is failures of a group that are more than may be.
type excess struct {
	counts kubermaticv1.ClusterCounts
	// seed is the one that is judged alone; empty: they are judged together.
	seed string
}

// obstacle is what keeps a group, and all after it, from opening.
type obstacle int

const (
	noObstacle obstacle = iota
	// earlier groups have a cluster behind or moving.
	earlier
	// lackOfEvidence: an earlier group has only away, failed and sick clusters.
	lackOfEvidence
	// lackOfApproval: the group starts when it is approved.
	lackOfApproval
	// byMaster: the master has not opened the group.
	byMaster
)

// verdict is what the rule comes to.
type verdict struct {
	states []kubermaticv1.GroupState
	// open is the group that may move its clusters, or NoGroup.
	open int
	// groups is how many may open.
	groups int
	// reason of condition Ready, and its message.
	reason, message string
}

// finished says that nothing of a group is left to move.
func finished(counts kubermaticv1.ClusterCounts) bool {
	return counts.Behind <= 0 && counts.Moving <= 0
}

// isNoEvidence says that a group has only away, failed and sick clusters. Where there is no
// cluster, or nothing can be carried out in any, nobody is asked for evidence.
func isNoEvidence(counts kubermaticv1.ClusterCounts) bool {
	return finished(counts) && counts.Current <= 0 && counts.New <= 0 && counts.Away+counts.Failed+counts.Sick > 0
}

// judge is the rule by which groups open. Counts are those of the strategy's groups; total has the
// clusters in no group too.
func judge(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit) verdict {
	if at := slices.IndexFunc(may.excesses, func(found *excess) bool { return found != nil }); at >= 0 {
		return halted(strategy, counts, may.excesses, at)
	}
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts))}
	behind := lastBehind(counts, may)
	at, reached := noObstacle, NoGroup // what keeps groups from opening, and the first that it keeps
	evident := true
	for i, group := range strategy.Groups {
		if at == noObstacle {
			if at = may.obstacle(i, group, evident); at == noObstacle {
				result.groups = i + 1
			} else {
				reached = i
			}
		}
		result.states[i] = stateOf(counts[i], at)
		if i == reached && i <= behind && awaitsApproval(group, at) {
			result.states[i] = kubermaticv1.GroupAwaitingApproval
		}
		if at == noObstacle && !finished(counts[i]) {
			result.open, at = i, earlier
		}
		if at == noObstacle && may.unknown > 0 {
			at = earlier
		}
		evident = evident && !isNoEvidence(counts[i])
	}
	result.reason, result.message = reasonOf(strategy, counts, total, may, obstruction{at, reached, result.open, behind})
	return result
}

// obstacle is what keeps a group from opening whose predecessors have nothing left to move.
func (p permit) obstacle(i int, group Group, evident bool) obstacle {
	switch {
	case i >= p.groups:
		return byMaster
	case p.evidence && !evident && i > p.approved:
		return lackOfEvidence
	case p.evidence && group.Start == kubermaticv1.StartApproved && i > p.approved:
		return lackOfApproval
	}
	return noObstacle
}

// awaitsApproval says that a group that could open else is one to approve, here or on the master.
func awaitsApproval(group Group, at obstacle) bool {
	return group.Start == kubermaticv1.StartApproved && (at == lackOfApproval || at == byMaster)
}

// lastBehind is the last group with a cluster that is behind, or NoGroup.
func lastBehind(counts []kubermaticv1.ClusterCounts, may permit) int {
	if may.unknown > 0 {
		return len(counts) - 1
	}
	for i, group := range slices.Backward(counts) {
		if group.Behind > 0 {
			return i
		}
	}
	return NoGroup
}

// stateOf is the state of a group of a rollout that is not halted.
func stateOf(counts kubermaticv1.ClusterCounts, at obstacle) kubermaticv1.GroupState {
	switch {
	case isNoEvidence(counts):
		return kubermaticv1.GroupNoEvidence
	case finished(counts):
		return kubermaticv1.GroupDone
	case at == noObstacle:
		return kubermaticv1.GroupOpen
	}
	return kubermaticv1.GroupWaiting
}

// isExceeded says whether more clusters of a group failed than may.
func (l Limit) isExceeded(counts kubermaticv1.ClusterCounts) bool {
	return int(counts.Failed) > l.Failures(int(counts.Selected))
}

// excesses are, by group, failures that are too many for all clusters that are counted; nil: they
// are not.
func excesses(strategy Strategy, counts []kubermaticv1.ClusterCounts) []*excess {
	found := make([]*excess, len(counts))
	for i, group := range strategy.Groups {
		if group.MaxFailures.isExceeded(counts[i]) {
			found[i] = &excess{counts: counts[i]}
		}
	}
	return found
}

// halted is the verdict on a rollout in which nothing moves, for the failures of the group at.
func halted(strategy Strategy, counts []kubermaticv1.ClusterCounts, found []*excess, at int) verdict {
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts)), reason: kubermaticv1.ReasonHalted}
	for i := range strategy.Groups {
		result.states[i] = stateOf(counts[i], earlier)
		if found[i] != nil {
			result.states[i] = kubermaticv1.GroupHalted
		}
	}
	group, failed, where := strategy.Groups[at], found[at].counts, ""
	if found[at].seed != "" {
		where = fmt.Sprintf(" on seed %q", found[at].seed)
	}
	result.message = fmt.Sprintf("%d of %s in group %q%s failed, at most %d may: nothing moves until they recover, maxFailures is raised or "+
		"a new revision comes", failed.Failed, text.Count(int(failed.Selected), "cluster"), group.Name, where,
		group.MaxFailures.Failures(int(failed.Selected)))
	return result
}

// obstruction is what judge found: what keeps which group, which group is open, and which is the
// last with something behind.
type obstruction struct {
	at                    obstacle
	reached, open, behind int
}

// reasonOf says how a rollout stands that is not halted.
func reasonOf(
	strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit, found obstruction,
) (reason, message string) {
	switch {
	case found.open != NoGroup || total.Moving > 0 || found.behind == NoGroup && total.Behind > 0:
		return kubermaticv1.ReasonRollingOut, progress(strategy, counts, total, found.open)
	case found.reached == NoGroup && may.unknown > 0:
		return kubermaticv1.ReasonRollingOut, "what clusters have is not known of " + text.Count(may.unknown, "seed")
	case found.behind != NoGroup && found.reached != NoGroup:
		return waiting(strategy.Groups[found.reached], found)
	case total.Current == 0 && total.New == 0 && total.Away+total.Failed+total.Sick > 0:
		return kubermaticv1.ReasonNoEvidence, "no cluster shows that the revision works: " + troubles(total)
	}
	message = fmt.Sprintf("%s, %d current", text.Count(int(total.Selected), "cluster"), total.Current)
	if total.New > 0 {
		message += fmt.Sprintf(", %d new", total.New)
	}
	if total.Away+total.Failed+total.Sick+total.Blocked > 0 {
		message += ", " + troubles(total)
	}
	return kubermaticv1.ReasonComplete, message
}

// waiting says what a group waits for that could open else.
func waiting(group Group, found obstruction) (reason, message string) {
	approve := fmt.Sprintf("annotation %s: <revision>/%s opens it", kubermaticv1.AnnotationApprove, group.Name)
	switch {
	case found.at == lackOfEvidence:
		return kubermaticv1.ReasonNoEvidence,
			fmt.Sprintf("a group before %q has only clusters that are away, failed or sick; %s", group.Name, approve)
	case group.Start == kubermaticv1.StartApproved:
		return kubermaticv1.ReasonAwaitingApproval, fmt.Sprintf("group %q waits for approval; %s", group.Name, approve)
	case found.reached == 0:
		return kubermaticv1.ReasonHalted, "the master lets nothing move: more clusters failed on all seeds than may"
	}
	return kubermaticv1.ReasonRollingOut, fmt.Sprintf("group %q waits for the master to open it", group.Name)
}

// progress says how far a rollout is that goes on.
func progress(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, open int) string {
	message := fmt.Sprintf("%d of %s current, %d moving, %d behind",
		total.Current, text.Count(int(total.Selected), "cluster"), total.Moving, total.Behind)
	if open != NoGroup {
		message += fmt.Sprintf("; group %q has %d moving and %d behind", strategy.Groups[open].Name, counts[open].Moving, counts[open].Behind)
	}
	return message
}

// troubles lists what is wrong with clusters.
func troubles(total kubermaticv1.ClusterCounts) string {
	var parts []string
	for _, part := range []struct {
		number int32
		what   string
	}{{total.Failed, "failed"}, {total.Sick, "sick"}, {total.Away, "away"}, {total.Blocked, "blocked"}} {
		if part.number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.number, part.what))
		}
	}
	return text.Names(parts, len(parts))
}
