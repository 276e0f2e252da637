package rollout

import (
	"crypto/sha256"
	"encoding/binary"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Standing is how a cluster stands, as Strategy.GroupOf and the state of its installations have it.
type Standing struct {
	// Group that it is in, or NoGroup: a new cluster, or one that is written at once.
	Group int
	// State of the cluster, one of kubermaticv1.ClusterState. Blocked is one in which no item can
	// be carried out: it has nothing to move, and shows nothing.
	State kubermaticv1.ClusterState
	// Sick: it is not Ready before its move, so it moves after all others of its group.
	Sick bool
	// Blocked: some item can't be carried out there. It is counted beside a state that is no trouble.
	Blocked bool
	// Held: it is behind, and all that is to be written there waits for annotation
	// removal-approved.
	Held bool
	// Again: it is moving or sick, and its target is another one by now. It is written again when
	// its group's turn is there: in the place that it has, or, being sick, once nobody else needs
	// one.
	Again bool
	// Holds: it is sick, and written, or what was written last may still come to an end. It takes a
	// place, and nobody waits for it.
	Holds bool
	// Lost: it is away, and was cut off after its move. Nobody waits for it, and it takes a place where
	// the revision may be why: see groupTally.lostPlaces.
	Lost bool
	// Trouble is what the status says of a failed, sick, away or blocked cluster.
	Trouble Trouble
	// Cause is the reason that a sick cluster may have of its own; empty: it is sick for another. It is failed once another cluster of the
	// set has the same: then it is the revision's.
	Cause string
	// Changes that are pending there.
	Changes []Change
}

// Trouble says why a cluster is failed, sick, away or blocked.
type Trouble struct {
	// Item that it is about; Reason and Message of its installation, or of the set.
	Item, Reason, Message string
}

// Change is what would become of one installation.
type Change struct {
	// Item that it is about.
	Item string
	// Kind of change.
	Kind kubermaticv1.ChangeKind
	// From and To are versions.
	From, To string
}

// Tally has the standing of every cluster of a set on a seed, in counts and in the order in which
// clusters move. An event costs O(log n). It is not safe for use by several goroutines.
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

// groupTally is what a Tally has of one group.
type groupTally struct {
	counts kubermaticv1.ClusterCounts
	// behind ones that may move, and moving and sick ones that may be written again.
	behind, again, late queue
	// held is how many are behind and wait for annotation removal-approved, holding how many sick
	// ones take a place, lost how many were cut off after their move.
	held, holding, lost int
}

// entry is a cluster in a Tally.
type entry struct {
	cluster string
	// order among the clusters of a group.
	order    uint64
	standing Standing
	// turn and row are where it is in a queue of its group, and among those in trouble.
	turn, row int
	changes   []membership
}

// NewTally makes a Tally without clusters. The name of the set is part of the order in which
// clusters move, so that not the same cluster is always first.
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

// movesBefore is the order in which the clusters of a group move: sick ones last, else by hash.
func movesBefore(a, b *entry) bool {
	switch {
	case a.standing.Sick != b.standing.Sick:
		return b.standing.Sick
	case a.order != b.order:
		return a.order < b.order
	}
	return a.cluster < b.cluster
}

// Put says how a cluster stands from now on. A cluster that was granted a move is to be Put as
// Moving at once.
func (t *Tally) Put(cluster string, standing Standing) {
	found := t.clusters[cluster]
	if found == nil {
		found = &entry{cluster: cluster, order: t.order(cluster), turn: nowhere, row: nowhere}
		t.clusters[cluster] = found
	} else {
		t.take(found)
	}
	changes := standing.Changes
	standing.Changes = nil
	standing.Group = min(max(standing.Group, NoGroup), maxGroups-1)
	standing.Trouble = bounded(standing.Trouble)
	found.standing = standing
	t.add(found, changes)
}

// Drop forgets a cluster that is gone, or in which the set has and wants nothing.
func (t *Tally) Drop(cluster string) {
	if found := t.clusters[cluster]; found != nil {
		t.take(found)
		delete(t.clusters, cluster)
	}
}

// SetOthers says whether there are clusters besides those that were Put.
func (t *Tally) SetOthers(exist bool) { t.others = exist }

// Has says whether a cluster was Put.
func (t *Tally) Has(cluster string) bool { return t.clusters[cluster] != nil }

// order of a cluster within its group.
func (t *Tally) order(cluster string) uint64 {
	sum := sha256.Sum256([]byte(t.set + "/" + cluster))
	return binary.BigEndian.Uint64(sum[:])
}

// add counts an entry and puts it where it waits.
func (t *Tally) add(e *entry, changes []Change) {
	count(&t.total, &e.standing, 1)
	t.causes.note(e.standing.Cause, e.standing.State, e.standing.Group, 1)
	if e.isTroubled() {
		t.troubled.push(e)
	}
	t.addChanges(e, changes)
	if e.standing.Group == NoGroup {
		return
	}
	group := &t.groups[e.standing.Group]
	count(&group.counts, &e.standing, 1)
	if turns := group.turnsOf(&e.standing); turns != nil {
		turns.push(e)
	}
	group.note(&e.standing, 1)
}

// take is add undone.
func (t *Tally) take(e *entry) {
	count(&t.total, &e.standing, -1)
	t.causes.note(e.standing.Cause, e.standing.State, e.standing.Group, -1)
	if e.isTroubled() {
		t.troubled.remove(e)
	}
	t.takeChanges(e)
	if e.standing.Group == NoGroup {
		return
	}
	group := &t.groups[e.standing.Group]
	count(&group.counts, &e.standing, -1)
	if turns := group.turnsOf(&e.standing); turns != nil {
		turns.remove(e)
	}
	group.note(&e.standing, -1)
}

// turnsOf a cluster is the queue that it waits in; nil: it waits in none.
func (g *groupTally) turnsOf(standing *Standing) *queue {
	switch state := standing.State; {
	case state == kubermaticv1.ClusterBehind && !standing.Held:
		return &g.behind
	case state == kubermaticv1.ClusterMoving && standing.Again:
		return &g.again
	case state == kubermaticv1.ClusterSick && standing.Again:
		return &g.late
	}
	return nil
}

// note a cluster that waits for approval, or takes a place and is not moving.
func (g *groupTally) note(standing *Standing, by int) {
	if standing.State == kubermaticv1.ClusterBehind && standing.Held {
		g.held += by
	}
	if standing.State == kubermaticv1.ClusterSick && standing.Holds {
		g.holding += by
	}
	if standing.State == kubermaticv1.ClusterAway && standing.Lost {
		g.lost += by
	}
}

// count adds a cluster to counts, or takes it off.
func count(counts *kubermaticv1.ClusterCounts, standing *Standing, by int32) {
	counts.Selected += by
	if standing.shownState() == kubermaticv1.ClusterBlocked {
		counts.Blocked += by
	}
	switch standing.State {
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

// Counts of all clusters.
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
