package waves

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// retryInterval is how often a write is tried again, at most, of a cluster that is sick for it.
const retryInterval = 5 * time.Minute

// Move is how a cluster stands in a set's rollout, and what its controller does about its move (ADR
// 69). Who was granted one holds a place; so does who is written, or may have been. The zero value
// is of a cluster that was not looked at.
type Move struct {
	// Standing of the cluster, its writes counted.
	Standing
	// found is how it stands by its objects alone.
	found Standing
	// granted says that it may be written, writing that it is.
	granted, writing bool
	// doubtedAt is since when it may have been written, and nobody knows: a write had no good answer.
	// Zero: it is known.
	doubtedAt time.Time
	// uncounted says that it was written since the cluster was counted: found is from before.
	uncounted bool
	refusal   refusal
}

// refusal of writes of a move, the last of them in words. The zero value: there was none.
type refusal struct {
	first, last time.Time
	trouble     rollout.Trouble
}

// Stand says how the cluster stands by its objects now, and since when what was written there is in
// doubt, as Written.DoubtedAt says it.
func (m *Move) Stand(found Standing, doubtedAt, now time.Time) {
	m.doubtedAt, m.uncounted = doubtedAt, false
	m.stand(found, now)
}

func (m *Move) stand(found Standing, now time.Time) {
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
	m.Standing = found
}

// mayBeUnderWay says whether what was written, and nobody knows of, may still be under way. Where
// the API server can't be asked, that ends when any move is over.
func (m *Move) mayBeUnderWay(found *Standing, now time.Time) bool {
	if m.doubtedAt.IsZero() {
		return false
	}
	over := m.doubtedAt.Add(2*found.deadline + found.soak)
	if !over.After(now) {
		return false
	}
	found.Next = Sooner(found.Next, over)
	return true
}

// Hold has the cluster wait, or not, as the guard of removals has it now.
func (m *Move) Hold(waiting map[string]bool, now time.Time) {
	found := m.found
	found.Held = found.State == v1.ClusterBehind && found.IsHeldBy(waiting)
	m.stand(found, now)
}

// mayMove says whether something is to be written there once the cluster is granted a move, or at
// once.
func (s *Standing) mayMove() bool {
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

// refused says how a cluster stands that can't be written: as it does, for as long as a move may
// take, and sick after that. Then it is tried now and then, also where it is written without a
// place, and nobody waits for it.
func (s *Standing) refused(by refusal, now time.Time) {
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

// Grant the cluster a move.
func (m *Move) Grant(now time.Time) {
	m.granted = true
	m.stand(m.found, now)
}

// IsGranted says whether the cluster may be written, also where that takes no place. What is written
// at once is so as the cluster was counted: after a write it has to be counted again.
func (m *Move) IsGranted() bool { return m.granted || m.AtOnce && !m.uncounted }

// IsPending says whether a write is to come, or may have been.
func (m *Move) IsPending() bool { return m.IsGranted() || !m.doubtedAt.IsZero() }

// IsWriting says whether a pass writes its move.
func (m *Move) IsWriting() bool { return m.writing }

// TakeBack what was granted, unless something is written by it; true: the place is free.
func (m *Move) TakeBack() bool {
	if !m.granted || m.writing || !m.doubtedAt.IsZero() {
		return false
	}
	m.granted = false
	return true
}

// Recall what was granted in a group that is not the open one any more: its groups, the master's
// gate or the labels of others changed before it was written. True: the place is free.
func (m *Move) Recall(open int) bool {
	return m.State == v1.ClusterMoving && m.Group != open && m.TakeBack()
}

// Void what was granted and refused in another revision.
func (m *Move) Void() { m.granted, m.refusal = false, refusal{} }

// Begin to write it.
func (m *Move) Begin() { m.writing = true }

// End of a pass that wrote, or tried to.
func (m *Move) End() { m.writing = false }

// Done says that all of it was written: until it is counted, the cluster keeps its place.
func (m *Move) Done() { m.granted, m.uncounted, m.refusal = false, true, refusal{} }

// Wrote says that part of it was written: until that is counted, the cluster keeps its place.
func (m *Move) Wrote() { m.uncounted = true }

// Refuse notes that a write of it failed, or that the API server can't be asked what is there. It
// counts once the cluster Stands again.
func (m *Move) Refuse(item string, err error, now time.Time) {
	if m.refusal.first.IsZero() {
		m.refusal.first = now
	}
	m.refusal.last = now
	m.refusal.trouble = rollout.Trouble{Item: item, Reason: v1.ReasonFailed, Message: "it can't be written: " + err.Error()}
}

// IsUnanswered says whether a write may have been carried out all the same, by the error of the call
// to the API server. It was not where that refused it.
func IsUnanswered(err error) bool {
	refused, isAnswer := errors.AsType[*apierrors.StatusError](err)
	if !isAnswer {
		return true
	}
	code := refused.ErrStatus.Code
	return code < http.StatusBadRequest || code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
}
