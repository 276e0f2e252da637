package waves

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// Presence reports whether a set, or a rule of one, is for a cluster.
type Presence int

const (
	// Unknown: it cannot be determined, and nothing is changed.
	Unknown Presence = iota
	// Present: it is.
	Present
	// Absent: it is not, and its installations there are to be removed.
	Absent
)

// Facts are the facts about a cluster and a set.
type Facts struct {
	Presence Presence
	// Labels are the cluster's labels and facts.
	Labels  labels.Set
	Created time.Time
	// Away is the reason why the cluster can't be written to; usually empty.
	Away string
	// Mine are the reports of the installations that the set manages there.
	Mine []*installation.Report
	// Changes are those to write as a move.
	Changes []rollout.Change
	// Removals are the changes with kind Remove; they wait if Course says so.
	Removals []rollout.Removal
	// Blocked are items that can't be carried out there.
	Blocked []rollout.Trouble
	// AtOnce says that it is written without a place: an applied version no longer fits.
	AtOnce bool
	// LeftOut says that annotation leave-out names the cluster.
	LeftOut bool
	// Deviates says how the cluster deviates from the set, by whose decision and why; empty if it does not. Such a cluster is left out too:
	// it is no evidence for the set, and its owner must not hold up others.
	Deviates string
}

// Course has the inputs of a cluster's state other than its facts.
type Course struct {
	Strategy  rollout.Strategy
	StartedAt time.Time
	Now       time.Time
	// Waiting are removals that are not approved, by ID.
	Waiting map[string]bool
	// Halted says that too many clusters failed in this revision: a failed one that is cut off since then still counts.
	Halted bool
}

// IsHalted reports whether the status of a set shows that its rollout of a revision is halted.
func IsHalted(reported *v1.AddonSetStatus, revision string) bool {
	ready := meta.FindStatusCondition(reported.Conditions, v1.ConditionReady)
	return reported.Revision == revision && ready != nil && ready.Reason == v1.ReasonHalted
}

// ClusterStatus is the state of a cluster in a set's rollout.
type ClusterStatus struct {
	rollout.ClusterStatus
	// AtOnce says that it is written without a place.
	AtOnce bool
	// Removals are the installations that are to be removed and are not deleted yet.
	Removals []rollout.Removal
	// Next is when time alone may change it; zero: never.
	Next time.Time
	// onlyRemovals says that there are no other writes.
	onlyRemovals bool
	// deadline is how long a move may take there, and soak how long it must be Ready after it.
	deadline, soak time.Duration
}

// IsHeldBy reports whether all writes of the cluster are removals that are not approved.
func (s *ClusterStatus) IsHeldBy(waiting map[string]bool) bool {
	return s.onlyRemovals && len(s.Removals) > 0 && !slices.ContainsFunc(s.Removals, func(one rollout.Removal) bool {
		return !waiting[one.ID]
	})
}

// ClusterStatusOf is the state of a cluster, by the table of "Waves" in docs/spec/addonset.md.
func ClusterStatusOf(found Facts, along Course) ClusterStatus {
	group := along.Strategy.GroupOf(found.Labels)
	pace := along.Strategy.Groups[group]
	moved := movesOf(found.Mine, installation.Pace{Soak: pace.Soak, Deadline: pace.ProgressDeadline}, along)
	result := ClusterStatus{
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
	if found.LeftOut || found.Deviates != "" {
		result.leaveOut(&about)
	}
	if result.Blocked && result.Trouble.Reason == "" {
		result.Trouble = found.Blocked[0]
	}
	return result
}

// situation has all inputs of a cluster's state.
type situation struct {
	Facts
	moves
	// isHeld says that all writes wait for approval; isNew that the cluster is younger than the revision. Its creation
	// is stamped by the API server's clock, the revision's start by the manager's: a cluster that was moved for an
	// earlier revision, and lacks something, is not new.
	isBehind, isHeld, isNew bool
}

// isEmptyHanded reports whether a cluster has no installation of a set, since all of it is blocked there.
func (s *situation) isEmptyHanded() bool { return len(s.Mine) == 0 && len(s.Blocked) > 0 }

// counts reports whether trouble of an installation counts; nil: there is none. If the set is absent, the
// installation is to be removed, and only trouble with its removal counts.
func (s *situation) counts(live *v1.AddonInstallation) bool {
	return live != nil && (s.Presence != Absent || !live.DeletionTimestamp.IsZero())
}

// isAtOnce reports whether a cluster moves at once, without a place: a new one that is not done, and one whose
// applied version no longer fits, even if it failed with another version, or moves to another: then it keeps its
// place. No cluster moves while it is away.
func (s *ClusterStatus) isAtOnce(about *situation) bool {
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

// isInTrouble reports whether a cluster failed, takes too long or is away. One that takes too long is sick: no
// failure, since it may wait for people, and no success. So is one that failed for a cause that may be its own: the
// Tally decides whether it is, by the causes of other clusters. No group waits for it, and it gets its changes after
// all others of its group.
func (s *ClusterStatus) isInTrouble(about *situation) bool {
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

// sicken marks a cluster as sick. It takes a place while a move is under way there.
func (s *ClusterStatus) sicken(about *situation, trouble rollout.Trouble) {
	s.State, s.Trouble, s.Holds = v1.ClusterSick, trouble, about.underway != nil
	s.Again = about.isBehind && !about.isHeld && about.Away == ""
}

// leaveOut makes a left-out cluster sick, in any state: neither a failure nor evidence. One that is away, blocked or
// written without a place is none of these anyway.
func (s *ClusterStatus) leaveOut(about *situation) {
	s.Lost = false
	if s.Group == rollout.NoGroup || s.State == v1.ClusterAway || s.State == v1.ClusterBlocked && about.Deviates == "" {
		return
	}
	reason, message := v1.ReasonLeftOut, "annotation "+v1.AnnotationLeaveOut+" of the set names it"
	if about.Deviates != "" {
		reason, message = v1.ReasonDeviates, about.Deviates
		if s.Trouble.Reason == "" && len(about.Blocked) > 0 {
			s.Trouble = about.Blocked[0]
		}
	}
	if s.Trouble.Reason != "" {
		message += fmt.Sprintf("; %s: %s", s.Trouble.Reason, s.Trouble.Message)
	}
	s.Held, s.Cause = false, ""
	s.sicken(about, rollout.Trouble{Item: s.Trouble.Item, Reason: reason, Message: message})
}

// inWaves is the state of a cluster that moves in its group, or has moved.
func (s *ClusterStatus) inWaves(about *situation) {
	switch {
	case about.underway != nil:
		s.State, s.Again = v1.ClusterMoving, about.isBehind && !about.isHeld
	case about.isBehind:
		s.State, s.Held = v1.ClusterBehind, about.isHeld
	case about.isEmptyHanded(): // no evidence, even if the cluster is new
		s.State = v1.ClusterBlocked
	case about.isNew: // in its group: it is done, so it is evidence for the revision
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

// Sooner is the earlier of two times; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
