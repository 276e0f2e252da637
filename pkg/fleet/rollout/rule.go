package rollout

import (
	"fmt"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// permit restricts the groups that the rule of order may open.
type permit struct {
	// groups is the number of groups that the master allows to open.
	groups int
	// approved is the last group that annotation approve opens, or NoGroup.
	approved int
	// evidence: the caller evaluates evidence and approvals.
	evidence bool
	// unknown is the number of seeds without known clusters: these may be behind in any group.
	unknown int
	// others: clusters exist that the set does not select.
	others bool
	// excesses are, by group, excessive failures; nil if there are none.
	excesses []*excess
	// listed returns clusters with problems, the gravest first, to name those that a message is about.
	listed func() []kubermaticv1.SetClusterStatus
}

// excess has failures of a group above the limit.
type excess struct {
	counts kubermaticv1.ClusterCounts
	// seed is the one that is evaluated alone; empty if all are evaluated together.
	seed string
}

// obstacle is the reason why a group, and all after it, do not open.
type obstacle int

const (
	noObstacle obstacle = iota
	// earlier groups have a cluster behind or moving.
	earlier
	// lackOfEvidence: an earlier group has no cluster with the whole revision.
	lackOfEvidence
	// lackOfApproval: the group starts when it is approved.
	lackOfApproval
	// byMaster: the master has not opened the group.
	byMaster
)

// verdict is the result of the rule.
type verdict struct {
	states []kubermaticv1.GroupState
	// open is the group that may move its clusters, or NoGroup.
	open int
	// groups is the number of groups that may open.
	groups int
	// reason of condition Ready, and its message.
	reason, message string
}

// finished reports that nothing of a group is left to move.
func finished(counts kubermaticv1.ClusterCounts) bool {
	return counts.Behind <= 0 && counts.Moving <= 0
}

// having is the number of clusters with the whole revision when nothing is left to move. Blocked counts clusters that
// have nothing, and those that are current or new and lack an item.
func having(counts kubermaticv1.ClusterCounts) int64 {
	numbers := toNumbers(counts)
	nothing := numbers[atSelected]
	for i, number := range numbers {
		if i != atSelected && i != atBlocked {
			nothing -= number
		}
	}
	return max(int64(counts.Current)+int64(counts.New)-max(numbers[atBlocked]-nothing, 0), 0)
}

// noEvidence are the groups that are no evidence for a revision: no cluster has it. After the last group nothing
// opens, and a seed knows only its own clusters: in these cases, groups without clusters or with blocked ones are
// done. So are all groups of a set that selects no cluster.
func (p permit) noEvidence(groups []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) []bool {
	found := make([]bool, len(groups))
	for i, counts := range groups {
		switch {
		case !finished(counts) || total.Selected <= 0:
		case i == len(groups)-1 || !p.evidence:
			found[i] = counts.Current <= 0 && counts.New <= 0 && counts.Away+counts.Failed+counts.Sick > 0
		default:
			found[i] = having(counts) == 0
		}
	}
	return found
}

// evaluate is the rule by which groups open. Argument counts has the counts of the strategy's groups; total includes the
// clusters in no group.
func evaluate(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit) verdict {
	if at := slices.IndexFunc(may.excesses, func(found *excess) bool { return found != nil }); at >= 0 {
		return may.halted(strategy, counts, total, at)
	}
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts))}
	unproven := may.noEvidence(counts, total)
	behind := lastBehind(counts, may)
	at, reached := noObstacle, NoGroup // the present obstacle, and the first group that it affects
	evident := true
	for i, group := range strategy.Groups {
		if at == noObstacle {
			if at = may.obstacle(i, group, evident); at == noObstacle {
				result.groups = i + 1
			} else {
				reached = i
			}
		}
		result.states[i] = stateOf(counts[i], unproven[i], at)
		if i == reached && i <= behind && awaitsApproval(group, at) {
			result.states[i] = kubermaticv1.GroupAwaitingApproval
		}
		if at == noObstacle && !finished(counts[i]) {
			result.open, at = i, earlier
		}
		if at == noObstacle && may.unknown > 0 {
			at = earlier
		}
		evident = evident && !unproven[i]
	}
	result.reason, result.message = reasonOf(strategy, counts, total, may, obstruction{at, reached, result.open, behind})
	return result
}

// obstacle is why a group does not open although its predecessors have nothing left to move.
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

// awaitsApproval reports that a group which could otherwise open needs approval, here or on the master.
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
func stateOf(counts kubermaticv1.ClusterCounts, isUnproven bool, at obstacle) kubermaticv1.GroupState {
	switch {
	case isUnproven:
		return kubermaticv1.GroupNoEvidence
	case finished(counts):
		return kubermaticv1.GroupDone
	case at == noObstacle:
		return kubermaticv1.GroupOpen
	}
	return kubermaticv1.GroupWaiting
}

// isExceeded reports whether more clusters of a group failed than allowed.
func (l Limit) isExceeded(counts kubermaticv1.ClusterCounts) bool {
	return int(counts.Failed) > l.Failures(int(counts.Selected))
}

// excesses are, by group, excessive failures among all counted clusters; nil if there are none.
func excesses(strategy Strategy, counts []kubermaticv1.ClusterCounts) []*excess {
	found := make([]*excess, len(counts))
	for i, group := range strategy.Groups {
		if group.MaxFailures.isExceeded(counts[i]) {
			found[i] = &excess{counts: counts[i]}
		}
	}
	return found
}

// halted is the verdict on a halted rollout, because of the failures of the group at.
func (p permit) halted(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, at int) verdict {
	unproven, found := p.noEvidence(counts, total), p.excesses
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts)), reason: kubermaticv1.ReasonHalted}
	for i := range strategy.Groups {
		result.states[i] = stateOf(counts[i], unproven[i], earlier)
		if found[i] != nil {
			result.states[i] = kubermaticv1.GroupHalted
		}
	}
	group, failed, seed, where := strategy.Groups[at], found[at].counts, found[at].seed, ""
	if seed != "" {
		where = fmt.Sprintf(" on seed %q", seed)
	}
	which := named(p.listed(), failed.Failed, func(row *kubermaticv1.SetClusterStatus) bool {
		return row.State == kubermaticv1.ClusterFailed && row.Group == group.Name && (seed == "" || row.Seed == seed)
	})
	result.message = fmt.Sprintf("%d of %s in group %q%s failed%s, and maxFailures allows %d: nothing moves until they recover, "+
		"maxFailures is raised or a new revision comes", failed.Failed, text.Count(int(failed.Selected), "cluster"), group.Name, where, which,
		group.MaxFailures.Failures(int(failed.Selected)))
	return result
}

// obstruction is the finding of judge: which obstacle affects which group, which group is open, and which is the last
// with a cluster behind.
type obstruction struct {
	at                    obstacle
	reached, open, behind int
}

// reasonOf is the reason and message of a rollout that is not halted.
func reasonOf(
	strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit, found obstruction,
) (reason, message string) {
	switch {
	case found.open != NoGroup || total.Moving > 0 || found.behind == NoGroup && total.Behind > 0:
		return kubermaticv1.ReasonRollingOut, progress(strategy, counts, total, found.open)
	case found.reached == NoGroup && may.unknown > 0:
		return kubermaticv1.ReasonRollingOut, progress(strategy, counts, total, found.open)
	case found.behind != NoGroup && found.reached != NoGroup:
		return waiting(strategy, counts, total, may, found)
	}
	return ended(counts, total, may)
}

// ended is the reason and message of a rollout in which nothing is left to move. Clusters that are away count neither
// for a set nor against it: their owners pause them and cut them off.
func ended(counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit) (reason, message string) {
	message = summary(counts, total)
	switch {
	case total.Selected <= 0 && may.others:
		return kubermaticv1.ReasonNoClusterSelected, "no cluster is selected: see spec.clusterSelector and spec.constraints"
	case total.Selected <= 0:
		return kubermaticv1.ReasonComplete, "there is no cluster yet"
	case total.Current <= 0 && total.New <= 0 && total.Failed+total.Sick > 0:
		return kubermaticv1.ReasonNoEvidence, "no cluster shows that the revision works: " + message +
			named(may.listed(), troubled(total), func(*kubermaticv1.SetClusterStatus) bool { return true })
	case having(total) == 0 && total.Failed+total.Sick <= 0 && total.Blocked > 0:
		return kubermaticv1.ReasonBlocked, message + named(may.listed(), total.Blocked, func(row *kubermaticv1.SetClusterStatus) bool {
			return row.State == kubermaticv1.ClusterBlocked
		})
	}
	return kubermaticv1.ReasonComplete, message
}

// waiting is the text about a group that could otherwise open, and waits.
func waiting(
	strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit, found obstruction,
) (reason, message string) {
	group := strategy.Groups[found.reached]
	approve := func(name string) string {
		return fmt.Sprintf("to open it, set annotation %s to %s/%s", kubermaticv1.AnnotationApprove, unnamedRevision, name)
	}
	switch {
	case found.at == lackOfEvidence:
		next := found.reached + slices.IndexFunc(counts[found.reached:], func(of kubermaticv1.ClusterCounts) bool { return of.Behind > 0 })
		notes := unproven(strategy, counts, may.noEvidence(counts, total), may.listed())
		name := strategy.Groups[max(next, found.reached)].Name
		return kubermaticv1.ReasonNoEvidence, fmt.Sprintf("group %q waits (%s): %s", name, approve(name), text.First(notes, unprovenNamed))
	case group.Start == kubermaticv1.StartApproved:
		return kubermaticv1.ReasonAwaitingApproval, fmt.Sprintf("group %q waits for approval; %s", group.Name, approve(group.Name))
	case found.reached == 0:
		return kubermaticv1.ReasonHalted, "the master stops all moves: more clusters failed on all seeds than maxFailures allows"
	}
	return kubermaticv1.ReasonRollingOut, fmt.Sprintf("group %q waits for the master to open it", group.Name)
}

// unnamedRevision is the placeholder for the revision in messages of the rule, which does not know it.
const unnamedRevision = "<revision>"

func selectsNothing(group string) string { return fmt.Sprintf("group %q selects no cluster", group) }

// unprovenNamed is the maximum number of groups without evidence in a message.
const unprovenNamed = 3

// unproven lists each group without evidence with the reason, and names some of its clusters with problems.
func unproven(
	strategy Strategy, counts []kubermaticv1.ClusterCounts, isUnproven []bool, listed []kubermaticv1.SetClusterStatus,
) []string {
	var notes []string
	for i, group := range strategy.Groups[:len(counts)-1] {
		switch {
		case !isUnproven[i]:
		case counts[i].Selected <= 0:
			notes = append(notes, selectsNothing(group.Name))
		default:
			notes = append(notes, fmt.Sprintf("no cluster of group %q has this revision: %s%s", group.Name, troubles(counts[i]),
				named(listed, troubled(counts[i]), func(row *kubermaticv1.SetClusterStatus) bool { return row.Group == group.Name })))
		}
	}
	return notes
}

// progress is a text about the progress of a rollout.
func progress(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, open int) string {
	message := fmt.Sprintf("%d of %s current, %d moving, %d behind",
		total.Current, text.Count(int(total.Selected), "cluster"), total.Moving, total.Behind)
	if open != NoGroup {
		message += fmt.Sprintf("; group %q has %d moving and %d behind", strategy.Groups[open].Name, counts[open].Moving, counts[open].Behind)
	}
	return message
}

// summary is a text with the number of clusters that have a revision, and the states of the others.
func summary(counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) string {
	fresh := total.New // new ones in no group are not done
	for i := range counts {
		fresh -= counts[i].New
	}
	message := fmt.Sprintf("%d of %s %s the revision", max(having(total)-int64(fresh), 0), text.Count(int(total.Selected), "cluster"),
		text.Verb(int(total.Selected), "has", "have"))
	if fresh > 0 {
		message += fmt.Sprintf(", %d %s new", fresh, text.Verb(int(fresh), "is", "are"))
	}
	if some := troubles(total); some != "" {
		message += ", " + some
	}
	return message
}

// CompletedMessage is the message of event Completed; argument message is the message of condition Ready.
func CompletedMessage(revision, message string) string {
	return fmt.Sprintf("revision %s has no cluster left to move: %s", revision, message)
}

// troubled is the number of clusters with problems.
func troubled(of kubermaticv1.ClusterCounts) int32 { return of.Failed + of.Sick + of.Away + of.Blocked }

// troubles counts the clusters with problems.
func troubles(total kubermaticv1.ClusterCounts) string {
	var parts []string
	for _, part := range []struct {
		number    int32
		one, many string
	}{
		{total.Failed, "failed", "failed"}, {total.Sick, "is sick", "are sick"},
		{total.Away, "is unreachable or paused", "are unreachable or paused"}, {total.Blocked, "is blocked", "are blocked"},
	} {
		if part.number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.number, text.Verb(int(part.number), part.one, part.many)))
		}
	}
	return strings.Join(parts, ", ")
}
