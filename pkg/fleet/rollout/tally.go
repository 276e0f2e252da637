package rollout

import (
	"crypto/sha256"
	"encoding/binary"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// ClusterStatus is the state of a cluster in a rollout, from Strategy.GroupOf and the state of its installations.
type ClusterStatus struct {
	// Group is its group, or NoGroup: for a new cluster, or one that is written at once.
	Group int
	// State of the cluster, one of kubermaticv1.ClusterState. Blocked means that no item can be carried out in it: it
	// has nothing to move, and is no evidence.
	State kubermaticv1.ClusterState
	// Sick: it is not Ready before its move, so it moves after all others of its group.
	Sick bool
	// Blocked: some item can't be carried out there. It is counted in addition to a state that is no problem.
	Blocked bool
	// Held: it is behind, and all its writes wait for annotation removal-approved.
	Held bool
	// Again: it is moving or sick, and its target has changed. It is written again when it is its group's turn: in its
	// own place, or, if sick, once no other cluster needs one.
	Again bool
	// Holds: it is sick, and being written, or the last write may still end. It takes a place, and no group waits for
	// it.
	Holds bool
	// Lost: it is away, and was cut off after its move. No group waits for it, and it takes a place if the revision may
	// be the cause: see groupTally.lostPlaces.
	Lost bool
	// Trouble is the status' text about a failed, sick, away or blocked cluster.
	Trouble Trouble
	// Cause is the reason of a sick cluster that may be its own; empty if it is sick for another reason. The cluster is
	// failed once another cluster of the set has the same cause: then it is the revision's.
	Cause string
	// Changes are those that are pending there.
	Changes []Change
}

// Trouble is the reason why a cluster is failed, sick, away or blocked.
type Trouble struct {
	// Item is the affected one; Reason and Message are from its installation, or from the set.
	Item, Reason, Message string
}

// Change is a possible change of one installation.
type Change struct {
	// Item is the affected one.
	Item string
	// Kind of change.
	Kind kubermaticv1.ChangeKind
	// From and To are versions.
	From, To string
}

// Tally has the state of every cluster of a set on a seed, in counts and in the order in which clusters move. An event
// costs O(log n). It is not safe for concurrent use.
type Tally struct {
	set      string
	clusters map[string]*entry
	total    kubermaticv1.ClusterCounts
	groups   [maxGroups]groupTally
	troubled queue
	changes  map[Change]*bucket
	pending  int
	others   bool
	causes   causes
}

// groupTally is the part of a Tally about one group.
type groupTally struct {
	counts kubermaticv1.ClusterCounts
	// behind has clusters that may move, again and late moving and sick ones that may be written again.
	behind, again, late queue
	// held is how many are behind and wait for annotation removal-approved, holding how many sick ones take a place,
	// lost how many were cut off after their move.
	held, holding, lost int
}

// entry is a cluster in a Tally.
type entry struct {
	cluster string
	// order is the position among the clusters of a group.
	order  uint64
	status ClusterStatus
	// turn and row are its positions in a queue of its group, and among those with problems.
	turn, row int
	changes   []membership
}

// NewTally returns a Tally without clusters. The order in which clusters move depends on the set's name, so that not
// the same cluster is always first.
func NewTally(set string) *Tally {
	tally := &Tally{
		set: set, clusters: map[string]*entry{}, changes: map[Change]*bucket{}, causes: causes{},
		troubled: queue{less: rowsBefore, at: func(e *entry) *int { return &e.row }},
	}
	for i := range tally.groups {
		turns := queue{less: movesBefore, at: func(e *entry) *int { return &e.turn }}
		tally.groups[i] = groupTally{behind: turns, again: turns, late: turns}
	}
	return tally
}

// movesBefore is the order in which the clusters of a group move: sick ones last, otherwise by hash.
func movesBefore(a, b *entry) bool {
	switch {
	case a.status.Sick != b.status.Sick:
		return b.status.Sick
	case a.order != b.order:
		return a.order < b.order
	}
	return a.cluster < b.cluster
}

// Put sets the state of a cluster. A cluster that was granted a move must be Put as Moving at once.
func (t *Tally) Put(cluster string, status ClusterStatus) {
	found := t.clusters[cluster]
	if found == nil {
		found = &entry{cluster: cluster, order: t.order(cluster), turn: nowhere, row: nowhere}
		t.clusters[cluster] = found
	} else {
		t.take(found)
	}
	changes := status.Changes
	status.Changes = nil
	status.Group = min(max(status.Group, NoGroup), maxGroups-1)
	status.Trouble = bounded(status.Trouble)
	found.status = status
	t.add(found, changes)
}

// Drop forgets a cluster that was deleted, or in which the set has no installation and needs none.
func (t *Tally) Drop(cluster string) {
	if found := t.clusters[cluster]; found != nil {
		t.take(found)
		delete(t.clusters, cluster)
	}
}

// SetOthers sets whether there are clusters other than those that were Put.
func (t *Tally) SetOthers(exist bool) { t.others = exist }

// Has reports whether a cluster was Put.
func (t *Tally) Has(cluster string) bool { return t.clusters[cluster] != nil }

// order is the position of a cluster within its group.
func (t *Tally) order(cluster string) uint64 {
	sum := sha256.Sum256([]byte(t.set + "/" + cluster))
	return binary.BigEndian.Uint64(sum[:])
}

// add counts an entry and adds it to its queue.
func (t *Tally) add(e *entry, changes []Change) {
	count(&t.total, &e.status, 1)
	t.causes.note(e.status.Cause, e.status.State, e.status.Group, 1)
	if e.isTroubled() {
		t.troubled.push(e)
	}
	t.addChanges(e, changes)
	if e.status.Group == NoGroup {
		return
	}
	group := &t.groups[e.status.Group]
	count(&group.counts, &e.status, 1)
	if turns := group.turnsOf(&e.status); turns != nil {
		turns.push(e)
	}
	group.note(&e.status, 1)
}

// take reverses add.
func (t *Tally) take(e *entry) {
	count(&t.total, &e.status, -1)
	t.causes.note(e.status.Cause, e.status.State, e.status.Group, -1)
	if e.isTroubled() {
		t.troubled.remove(e)
	}
	t.takeChanges(e)
	if e.status.Group == NoGroup {
		return
	}
	group := &t.groups[e.status.Group]
	count(&group.counts, &e.status, -1)
	if turns := group.turnsOf(&e.status); turns != nil {
		turns.remove(e)
	}
	group.note(&e.status, -1)
}

// turnsOf is the queue that a cluster waits in; nil if none.
func (g *groupTally) turnsOf(status *ClusterStatus) *queue {
	switch state := status.State; {
	case state == kubermaticv1.ClusterBehind && !status.Held:
		return &g.behind
	case state == kubermaticv1.ClusterMoving && status.Again:
		return &g.again
	case state == kubermaticv1.ClusterSick && status.Again:
		return &g.late
	}
	return nil
}

// note counts a cluster that waits for approval, or takes a place without moving.
func (g *groupTally) note(status *ClusterStatus, by int) {
	if status.State == kubermaticv1.ClusterBehind && status.Held {
		g.held += by
	}
	if status.State == kubermaticv1.ClusterSick && status.Holds {
		g.holding += by
	}
	if status.State == kubermaticv1.ClusterAway && status.Lost {
		g.lost += by
	}
}

// count adds a cluster to counts, or removes it.
func count(counts *kubermaticv1.ClusterCounts, status *ClusterStatus, by int32) {
	counts.Selected += by
	if status.shownState() == kubermaticv1.ClusterBlocked {
		counts.Blocked += by
	}
	switch status.State {
	case kubermaticv1.ClusterCurrent:
		counts.Current += by
	case kubermaticv1.ClusterMoving:
		counts.Moving += by
	case kubermaticv1.ClusterBehind:
		counts.Behind += by
	case kubermaticv1.ClusterFailed:
		counts.Failed += by
	case kubermaticv1.ClusterSick:
		counts.Sick += by
	case kubermaticv1.ClusterAway:
		counts.Away += by
	case kubermaticv1.ClusterNew:
		counts.New += by
	}
}

// Counts are those of all clusters.
func (t *Tally) Counts() kubermaticv1.ClusterCounts {
	return t.causes.blamed(t.total, NoGroup, t.causes)
}

// GroupCounts are the counts of each group of a strategy.
func (t *Tally) GroupCounts(strategy Strategy) []kubermaticv1.ClusterCounts {
	counts := make([]kubermaticv1.ClusterCounts, len(strategy.Groups))
	for i := range counts {
		counts[i] = t.causes.blamed(t.groups[i].counts, i, t.causes)
	}
	return counts
}
