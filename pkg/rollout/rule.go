package rollout

import (
	"fmt"
	"slices"
	"strings"

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
	// others: clusters exist that the set does not select.
	others bool
	// excesses are, by group, which failures are too many; nil: none are.
	excesses []*excess
	// listed are clusters in trouble, to name those that show nothing.
	listed func() []kubermaticv1.SetClusterStatus
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
	// lackOfEvidence: an earlier group has no cluster with all of the revision.
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

// having is how many clusters have all of a revision, where nothing is left to move. Blocked ones are
// those that have nothing, and those that are current or new and lack an item.
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

// noEvidence are the groups that show nothing of a revision: no cluster has it. After the last group
// nothing opens, and a seed knows its own clusters alone: there, groups without clusters or with
// blocked ones are done. So are all of a set that selects no cluster.
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

// judge is the rule by which groups open. Counts are those of the strategy's groups; total has the
// clusters in no group too.
func judge(strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit) verdict {
	if at := slices.IndexFunc(may.excesses, func(found *excess) bool { return found != nil }); at >= 0 {
		return halted(strategy, counts, may.noEvidence(counts, total), may.excesses, at)
	}
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts))}
	unproven := may.noEvidence(counts, total)
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
func halted(strategy Strategy, counts []kubermaticv1.ClusterCounts, unproven []bool, found []*excess, at int) verdict {
	result := verdict{open: NoGroup, states: make([]kubermaticv1.GroupState, len(counts)), reason: kubermaticv1.ReasonHalted}
	for i := range strategy.Groups {
		result.states[i] = stateOf(counts[i], unproven[i], earlier)
		if found[i] != nil {
			result.states[i] = kubermaticv1.GroupHalted
		}
	}
	group, failed, where := strategy.Groups[at], found[at].counts, ""
	if found[at].seed != "" {
		where = fmt.Sprintf(" on seed %q", found[at].seed)
	}
	result.message = fmt.Sprintf("%d of %s in group %q%s failed, and maxFailures allows %d: nothing moves until they recover, "+
		"maxFailures is raised or a new revision comes", failed.Failed, text.Count(int(failed.Selected), "cluster"), group.Name, where,
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
		return kubermaticv1.ReasonRollingOut, progress(strategy, counts, total, found.open)
	case found.behind != NoGroup && found.reached != NoGroup:
		return waiting(strategy, counts, total, may, found)
	}
	return ended(counts, total, may)
}

// ended says how a rollout stands in which nothing is left to move. Clusters that are away count neither
// for a set nor against it: their owners pause them and cut them off.
func ended(counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit) (reason, message string) {
	message = summary(counts, total)
	switch {
	case total.Selected <= 0 && may.others:
		return kubermaticv1.ReasonNoClusterSelected, "no cluster is selected: see spec.clusterSelector and spec.constraints"
	case total.Selected <= 0:
		return kubermaticv1.ReasonComplete, "there is no cluster yet"
	case total.Current <= 0 && total.New <= 0 && total.Failed+total.Sick > 0:
		return kubermaticv1.ReasonNoEvidence, "no cluster shows that the revision works: " + message
	case having(total) == 0 && total.Failed+total.Sick <= 0 && total.Blocked > 0:
		return kubermaticv1.ReasonBlocked, message
	}
	return kubermaticv1.ReasonComplete, message
}

// waiting says what a group waits for that could open else.
func waiting(
	strategy Strategy, counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts, may permit, found obstruction,
) (reason, message string) {
	group := strategy.Groups[found.reached]
	approve := func(name string) string {
		return fmt.Sprintf("annotation %s: %s/%s opens", kubermaticv1.AnnotationApprove, unnamedRevision, name)
	}
	switch {
	case found.at == lackOfEvidence:
		next := found.reached + slices.IndexFunc(counts[found.reached:], func(of kubermaticv1.ClusterCounts) bool { return of.Behind > 0 })
		notes := unproven(strategy, counts, may.noEvidence(counts, total), may.listed())
		name := strategy.Groups[max(next, found.reached)].Name
		return kubermaticv1.ReasonNoEvidence, fmt.Sprintf("%s; %s group %q", text.First(notes, unprovenNamed), approve(name), name)
	case group.Start == kubermaticv1.StartApproved:
		return kubermaticv1.ReasonAwaitingApproval, fmt.Sprintf("group %q waits for approval; %s it", group.Name, approve(group.Name))
	case found.reached == 0:
		return kubermaticv1.ReasonHalted, "the master lets nothing move: more clusters failed on all seeds than maxFailures allows"
	}
	return kubermaticv1.ReasonRollingOut, fmt.Sprintf("group %q waits for the master to open it", group.Name)
}

// unnamedRevision stands for the revision in messages of the rule, which does not know it.
const unnamedRevision = "<revision>"

func selectsNothing(group string) string { return fmt.Sprintf("group %q selects no cluster", group) }

// unprovenNamed is how many groups without evidence a message names.
const unprovenNamed = 3

// unproven says of each group that is no evidence why, and names clusters of it in trouble.
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
				troubledOf(group.Name, listed)))
		}
	}
	return notes
}

// troubledOf a group names a few of its clusters in trouble, with their reasons.
func troubledOf(group string, listed []kubermaticv1.SetClusterStatus) string {
	var names []string
	for _, row := range listed {
		if row.Group == group && row.Reason != "" {
			names = append(names, text.Cut(row.Name, maxItem)+": "+row.Reason)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + text.First(names, unprovenNamed) + ")"
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

// summary says how many clusters have a revision, and what is with the others.
func summary(counts []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) string {
	fresh := total.New // those in no group are not done
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

// CompletedMessage is that of the event that a revision has nothing left to move; message is that of Ready.
func CompletedMessage(revision, message string) string {
	return fmt.Sprintf("nothing of revision %s is left to move: %s", revision, message)
}

// troubles counts what is wrong with clusters.
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
