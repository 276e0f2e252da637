package waves

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// Presence says whether a set, or a rule of one, is about a cluster.
type Presence int

const (
	// Unknown: it can't be told, and nothing is changed.
	Unknown Presence = iota
	// Present: it is.
	Present
	// Absent: it is not, and what it has there is to go.
	Absent
)

// Facts are what is known of a cluster and a set.
type Facts struct {
	Presence Presence
	// Labels and facts of the cluster.
	Labels  labels.Set
	Created time.Time
	// Away is why the cluster can't be written to; empty as a rule.
	Away string
	// Mine is what the installations say that the set looks after there.
	Mine []*installation.Report
	// Changes are those to be written as a move.
	Changes []rollout.Change
	// Removals are, of the changes, those of kind Remove that wait if the course says so.
	Removals []rollout.Removal
	// Blocked are items that can't be carried out there.
	Blocked []rollout.Trouble
	// AtOnce says that it is to be written without a place: what is applied does not fit any more.
	AtOnce bool
	// LeftOut says that annotation leave-out names the cluster.
	LeftOut bool
}

// Course is what the state of a cluster depends on besides its facts.
type Course struct {
	Strategy  rollout.Strategy
	StartedAt time.Time
	Now       time.Time
	// Waiting are removals that nobody has approved, by ID.
	Waiting map[string]bool
	// Halted says that too many clusters failed in this revision: one that failed and is cut off since then still counts.
	Halted bool
}

// IsHalted says whether the status of a set tells that its rollout of a revision is halted.
func IsHalted(told *v1.AddonSetStatus, revision string) bool {
	ready := meta.FindStatusCondition(told.Conditions, v1.ConditionReady)
	return told.Revision == revision && ready != nil && ready.Reason == v1.ReasonHalted
}

// Standing is how a cluster stands in a set's rollout.
type Standing struct {
	rollout.Standing
	// AtOnce says that it is written without a place.
	AtOnce bool
	// Removals are the installations that are to go and are not deleted yet.
	Removals []rollout.Removal
	// Next is when time alone may change it; zero: never.
	Next time.Time
	// onlyRemovals says that nothing else is to be written.
	onlyRemovals bool
	// deadline is how long a move may take there, and soak how long it is to be Ready after it.
	deadline, soak time.Duration
}

// IsHeldBy removals that nobody has approved: nothing else is to be written in the cluster.
func (s *Standing) IsHeldBy(waiting map[string]bool) bool {
	return s.onlyRemovals && len(s.Removals) > 0 && !slices.ContainsFunc(s.Removals, func(one rollout.Removal) bool {
		return !waiting[one.ID]
	})
}

// StandingOf a cluster, by the table of "Waves" in docs/spec/addonset.md.
func StandingOf(found Facts, along Course) Standing {
	group := along.Strategy.GroupOf(found.Labels)
	pace := along.Strategy.Groups[group]
	moved := movesOf(found.Mine, installation.Pace{Soak: pace.Soak, Deadline: pace.ProgressDeadline}, along)
	result := Standing{
		Next: moved.next, Removals: found.Removals, deadline: pace.ProgressDeadline, soak: pace.Soak,
		onlyRemovals: !slices.ContainsFunc(found.Changes, func(one rollout.Change) bool { return one.Kind != v1.ChangeRemove }),
	}
	result.Group, result.Sick, result.Blocked, result.Changes = group, moved.sick, len(found.Blocked) > 0, changesOf(found)
	about := situation{
		Facts: found, moves: moved, isBehind: len(found.Changes) > 0, isHeld: result.IsHeldBy(along.Waiting),
	}
	about.isNew = found.Presence != Absent && !found.Created.Before(along.StartedAt) && (!about.isBehind || !moved.earlier)
	about.Away = cmp.Or(found.Away, moved.unreachable)
	if !result.isAtOnce(&about) && !result.isInTrouble(&about) {
		result.inWaves(&about)
	}
	if found.LeftOut {
		result.leaveOut(&about)
	}
	if result.Blocked && result.Trouble.Reason == "" {
		result.Trouble = found.Blocked[0]
	}
	return result
}

// situation is all that the state of a cluster is taken from.
type situation struct {
	Facts
	moves
	// isHeld says that all that is to be written waits for approval; isNew that the cluster is
	// younger than the revision. The API server's clock says when it was made, the manager's when the
	// revision began: one that was moved for an earlier revision, and lacks something, is not new.
	isBehind, isHeld, isNew bool
}

// isEmptyHanded says whether a cluster has nothing of a set, since all of it is blocked there.
func (s *situation) isEmptyHanded() bool { return len(s.Mine) == 0 && len(s.Blocked) > 0 }

// counts says whether trouble of an installation counts; nil: there is none. What is in trouble
// where the set is absent is to be removed, and counts once its removal is in trouble.
func (s *situation) counts(live *v1.AddonInstallation) bool {
	return live != nil && (s.Presence != Absent || !live.DeletionTimestamp.IsZero())
}

// isAtOnce says whether a cluster moves at once, without a place: a new one that is not done, and
// one whose applied version no longer fits, also where it failed with another, or moves to another:
// then it keeps the place that it has. None moves while it is away.
func (s *Standing) isAtOnce(about *situation) bool {
	isDone := !about.isBehind && about.underway == nil && about.failed == nil && about.overdue == nil
	switch {
	case about.Away != "" || about.Presence == Unknown:
		return false
	case about.isNew && !isDone:
		s.State, s.Group, s.AtOnce = v1.ClusterNew, rollout.NoGroup, about.isBehind && !about.isHeld
	case !about.isBehind || !about.AtOnce:
		return false
	case about.underway != nil && about.failed == nil && about.overdue == nil:
		s.State, s.Again, s.AtOnce = v1.ClusterMoving, true, true
	default:
		s.State, s.Group, s.AtOnce = v1.ClusterBehind, rollout.NoGroup, true
	}
	return true
}

// isInTrouble says whether a cluster failed, takes too long or is away. What takes too long is
// sick: no failure, since it may wait for people, and no success. So is what failed for a reason that
// may be the cluster's own: the Tally says whether it is, by what others report. Nobody waits for it,
// and it gets what it lacks after all others of its group.
func (s *Standing) isInTrouble(about *situation) bool {
	switch {
	case about.counts(about.failed) && !about.isSick() && about.failedState.Cause == "":
		s.State, s.Trouble = v1.ClusterFailed, troubleOf(about.failed, about.failedState)
	case about.counts(about.failed):
		s.sicken(about, troubleOf(about.failed, about.failedState))
		if !about.isSick() {
			s.Cause, s.Trouble.Reason = about.failedState.Cause, about.failedState.Cause
		}
	case about.counts(about.overdue):
		s.sicken(about, overdueOf(about.overdue, about.overdueState))
	case about.counts(about.lost) && about.underway == nil:
		s.State, s.Trouble, s.Lost = v1.ClusterAway, lostTo(about.lost, about.lostState), !about.lostState.Paused
	case about.Away != "" && (about.isBehind || about.isEmptyHanded()) || about.Presence == Unknown:
		s.State = v1.ClusterAway
		s.Trouble = rollout.Trouble{
			Reason: cmp.Or(about.Away, v1.ReasonClusterNotReady), Message: "nothing is written to the cluster until it can be watched",
		}
	default:
		return false
	}
	return true
}

// sicken says that a cluster is sick. It takes a place while something is under way there.
func (s *Standing) sicken(about *situation, trouble rollout.Trouble) {
	s.State, s.Trouble, s.Holds = v1.ClusterSick, trouble, about.underway != nil
	s.Again = about.isBehind && !about.isHeld && about.Away == ""
}

// leaveOut has a cluster be sick that is left out, in whatever state: neither a failure nor evidence. What is away, blocked or written
// without a place is none of these anyway.
func (s *Standing) leaveOut(about *situation) {
	s.Lost = false
	if s.Group == rollout.NoGroup || s.State == v1.ClusterAway || s.State == v1.ClusterBlocked {
		return
	}
	message := "annotation " + v1.AnnotationLeaveOut + " of the set names it"
	if s.Trouble.Reason != "" {
		message += fmt.Sprintf("; %s: %s", s.Trouble.Reason, s.Trouble.Message)
	}
	s.Held, s.Cause = false, ""
	s.sicken(about, rollout.Trouble{Item: s.Trouble.Item, Reason: v1.ReasonLeftOut, Message: message})
}

// inWaves is how a cluster stands that moves in its group, or has moved.
func (s *Standing) inWaves(about *situation) {
	switch {
	case about.underway != nil:
		s.State, s.Again = v1.ClusterMoving, about.isBehind && !about.isHeld
	case about.isBehind:
		s.State, s.Held = v1.ClusterBehind, about.isHeld
	case about.isEmptyHanded(): // no evidence, also where the cluster is new
		s.State = v1.ClusterBlocked
	case about.isNew: // in its group: it is done, so it shows that the revision works
		s.State = v1.ClusterNew
	default:
		s.State = v1.ClusterCurrent
	}
}

func changesOf(found Facts) []rollout.Change {
	changes := found.Changes
	for _, one := range found.Blocked {
		changes = append(slices.Clip(changes), rollout.Change{Item: one.Item, Kind: v1.ChangeBlocked})
	}
	return changes
}

// Sooner of two times; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
