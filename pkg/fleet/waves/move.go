package waves

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// retryInterval is the maximal time between two attempts to write a cluster that is sick because of failed writes.
const retryInterval = 5 * time.Minute

// Move is the state of a cluster in a set's rollout, and the state of its move (ADR 69). A cluster that was granted a
// move takes a place; so does one that is being written, or may have been. The zero value is for a cluster that was
// not counted.
type Move struct {
	// ClusterStatus of the cluster, including its writes.
	ClusterStatus
	// found is its state by its objects alone.
	found ClusterStatus
	// granted says that it may be written, writing that it is being written.
	granted, writing bool
	// unknownSince is since when it is unknown whether it was written: a write had no good answer. Zero: it is known.
	unknownSince time.Time
	// uncounted says that it was written since the cluster was counted: found is older.
	uncounted bool
	refusal   refusal
}

// refusal has the times of refused writes of a move, and the last problem. The zero value: there was none.
type refusal struct {
	first, last time.Time
	trouble     rollout.Trouble
}

// SetStatus sets the cluster's present state by its objects, and since when the result of a write is unknown, as
// Written.UnknownSince returns it.
func (m *Move) SetStatus(found ClusterStatus, unknownSince, now time.Time) {
	m.unknownSince, m.uncounted = unknownSince, false
	m.setStatus(found, now)
}

func (m *Move) setStatus(found ClusterStatus, now time.Time) {
	m.found = found
	isDue := found.mayMove()
	if !isDue && found.State != v1.ClusterAway {
		m.refusal = refusal{}
	}
	if !m.refusal.first.IsZero() {
		found.refused(m.refusal, now)
	}
	m.granted = m.granted && found.mayMove()
	holds := m.granted || m.writing || m.uncounted || m.mayBeUnderWay(&found, now)
	if holds && found.State != v1.ClusterNew && (isDue || found.State == v1.ClusterBehind) {
		found.Again, found.Holds = false, found.State == v1.ClusterSick
		if !found.Holds {
			found.State = v1.ClusterMoving
		}
	}
	m.ClusterStatus = found
}

// mayBeUnderWay reports whether a write with an unknown result may still have effects. If the API server can't be
// asked, that ends when any move would be over.
func (m *Move) mayBeUnderWay(found *ClusterStatus, now time.Time) bool {
	if m.unknownSince.IsZero() {
		return false
	}
	over := m.unknownSince.Add(2*found.deadline + found.soak)
	if !over.After(now) {
		return false
	}
	found.Next = Sooner(found.Next, over)
	return true
}

// Hold makes the cluster wait or not, according to the guard of removals.
func (m *Move) Hold(waiting map[string]bool, now time.Time) {
	found := m.found
	found.Held = found.State == v1.ClusterBehind && found.IsHeldBy(waiting)
	m.setStatus(found, now)
}

// mayMove reports whether the cluster is written once it is granted a move, or at once.
func (s *ClusterStatus) mayMove() bool {
	switch s.State {
	case v1.ClusterNew:
		return s.AtOnce
	case v1.ClusterBehind:
		return !s.Held
	case v1.ClusterMoving, v1.ClusterSick:
		return s.Again
	}
	return false
}

// refused is the state of a cluster that can't be written: unchanged for as long as a move may take, then sick. After
// that, the write is retried from time to time, also one that takes no place, and no group waits for the cluster.
func (s *ClusterStatus) refused(by refusal, now time.Time) {
	if s.State == v1.ClusterBehind || s.State == v1.ClusterNew {
		if over := by.first.Add(s.deadline); over.After(now) {
			s.Next = Sooner(s.Next, over)
			return
		}
		s.State, s.Again, s.Trouble = v1.ClusterSick, true, by.trouble
	}
	if next := by.last.Add(min(s.deadline, retryInterval)); s.State == v1.ClusterSick && next.After(now) {
		s.Again, s.AtOnce, s.Next = false, false, Sooner(s.Next, next)
	}
}

// Grant grants the cluster a move.
func (m *Move) Grant(now time.Time) {
	m.granted = true
	m.setStatus(m.found, now)
}

// IsGranted reports whether the cluster may be written, also if that takes no place. An immediate write is based on
// the last count: after a write the cluster must be counted again.
func (m *Move) IsGranted() bool { return m.granted || m.AtOnce && !m.uncounted }

// IsPending reports whether a write is due, or has an unknown result.
func (m *Move) IsPending() bool { return m.IsGranted() || !m.unknownSince.IsZero() }

// IsWriting reports whether a reconciliation writes its move.
func (m *Move) IsWriting() bool { return m.writing }

// Revoke revokes a grant, unless it is being written; true: the place is free.
func (m *Move) Revoke() bool {
	if !m.granted || m.writing || !m.unknownSince.IsZero() {
		return false
	}
	m.granted = false
	return true
}

// Recall revokes a grant in a group that is no longer the open one: the groups, the master's gate or the labels of
// other clusters changed before the write. True: the place is free.
func (m *Move) Recall(open int) bool {
	return m.State == v1.ClusterMoving && m.Group != open && m.Revoke()
}

// Void revokes grants and refusals of another revision.
func (m *Move) Void() { m.granted, m.refusal = false, refusal{} }

// Begin marks the start of its writes.
func (m *Move) Begin() { m.writing = true }

// End marks the end of a reconciliation that wrote, or tried to.
func (m *Move) End() { m.writing = false }

// Done says that all its writes were made: until it is counted, the cluster keeps its place.
func (m *Move) Done() { m.granted, m.uncounted, m.refusal = false, true, refusal{} }

// Wrote says that some of its writes were made: until they are counted, the cluster keeps its place.
func (m *Move) Wrote() { m.uncounted = true }

// Refuse notes that a write of it failed, or that the API server can't be asked about existing objects. It counts at
// the next SetStatus.
func (m *Move) Refuse(item string, err error, now time.Time) {
	if m.refusal.first.IsZero() {
		m.refusal.first = now
	}
	m.refusal.last = now
	m.refusal.trouble = rollout.Trouble{Item: item, Reason: v1.ReasonFailed, Message: "it can't be written: " + err.Error()}
}

// IsUnanswered reports whether a write may have been carried out despite its error. It was not if the API server
// refused it.
func IsUnanswered(err error) bool {
	refused, isAnswer := errors.AsType[*apierrors.StatusError](err)
	if !isAnswer {
		return true
	}
	code := refused.ErrStatus.Code
	return code < http.StatusBadRequest || code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
}
