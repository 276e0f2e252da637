package rollout

import (
	"cmp"
	"math"
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Bounds of the status, as in the CRD.
const (
	maxRows    = 50
	maxPending = 50
	// maxChanges is the maximum number of counted changes of one cluster: the items of a set, and as many that it no
	// longer has.
	maxChanges = 128
	maxItem    = 63
	maxReason  = 128
	maxVersion = 128
	maxName    = 253
	maxMessage = 512
	maxCount   = math.MaxInt32
)

// fit makes a foreign text one line with this many bytes at most.
func fit(foreign string, most int) string {
	if len(foreign) > 4*most {
		foreign = foreign[:4*most]
	}
	clean := text.Line(foreign)
	if len(clean) > most {
		return text.Cut(clean, most-len("…"))
	}
	return clean
}

// bounded makes a foreign text fit for the status.
func bounded(trouble Trouble) Trouble {
	if trouble == (Trouble{}) {
		return trouble
	}
	return Trouble{Item: fit(trouble.Item, maxItem), Reason: fit(trouble.Reason, maxReason), Message: fit(trouble.Message, maxMessage)}
}

// troubledStates are the states for which a cluster is listed, the most important first.
var troubledStates = []kubermaticv1.ClusterState{
	kubermaticv1.ClusterFailed, kubermaticv1.ClusterSick, kubermaticv1.ClusterAway, kubermaticv1.ClusterBlocked,
}

// shownState is the state in the list: a cluster whose state is no problem may have a blocked item.
func (s *ClusterStatus) shownState() kubermaticv1.ClusterState {
	if s.Blocked && !slices.Contains(troubledStates, s.State) {
		return kubermaticv1.ClusterBlocked
	}
	return s.State
}

// isTroubled reports whether a cluster is listed.
func (e *entry) isTroubled() bool { return slices.Contains(troubledStates, e.status.shownState()) }

// rowsBefore is the order of clusters in the status: by state, sick ones that may count as failed before others, then by name.
func rowsBefore(a, b *entry) bool {
	one, other := slices.Index(troubledStates, a.status.shownState()), slices.Index(troubledStates, b.status.shownState())
	if one != other {
		return one < other
	}
	if hasCause := a.status.Cause != ""; hasCause != (b.status.Cause != "") {
		return hasCause
	}
	return a.cluster < b.cluster
}

// Troubled are the rows of status.clusters: failed clusters first, then sick, away and blocked ones, at most 50.
func (t *Tally) Troubled(strategy Strategy) []kubermaticv1.SetClusterStatus {
	var rows []kubermaticv1.SetClusterStatus
	for _, e := range t.troubled.first(maxRows) {
		trouble, group, state := e.status.Trouble, "", e.status.shownState()
		if state == kubermaticv1.ClusterSick && t.causes.isShared(e.status.Cause) {
			state = kubermaticv1.ClusterFailed
		}
		if at := e.status.Group; at >= 0 && at < len(strategy.Groups) {
			group = strategy.Groups[at].Name
		}
		rows = append(rows, kubermaticv1.SetClusterStatus{
			Name: fit(e.cluster, maxName), Group: group, State: state, Item: trouble.Item, Reason: trouble.Reason, Message: trouble.Message,
			Cause: e.status.Cause,
		})
	}
	return rows
}

// bucket has the clusters with one change, in no order.
type bucket struct {
	change  Change
	members []member
	// example is the cluster that was last shown; nil if none was.
	example *entry
}

// has reports whether a cluster has the change.
func (b *bucket) has(e *entry) bool {
	return e != nil && slices.ContainsFunc(e.changes, func(one membership) bool { return one.bucket == b })
}

// exampleOf is the previously shown cluster, as long as it has the change, otherwise the first by name: the status of
// a set must not change without reason.
func (b *bucket) exampleOf() string {
	if !b.has(b.example) {
		first := slices.MinFunc(b.members, func(one, other member) int { return strings.Compare(one.entry.cluster, other.entry.cluster) })
		b.example = first.entry
	}
	return b.example.cluster
}

// member is a cluster in a bucket; at is the index of the change in the cluster.
type member struct {
	entry *entry
	at    int
}

// membership is the bucket in which a change of a cluster is counted.
type membership struct {
	bucket *bucket
	at     int
}

func (t *Tally) addChanges(e *entry, changes []Change) {
	changes = changes[:min(len(changes), maxChanges)]
	if len(changes) == 0 {
		return
	}
	e.changes = make([]membership, 0, len(changes))
	for _, change := range changes {
		found := t.bucketOf(change)
		found.members = append(found.members, member{e, len(e.changes)})
		e.changes = append(e.changes, membership{found, len(found.members) - 1})
	}
	t.notePending(e, 1)
}

// notePending counts the changes of a cluster, except for blocked ones.
func (t *Tally) notePending(e *entry, by int) {
	for _, one := range e.changes {
		if one.bucket.change.Kind != kubermaticv1.ChangeBlocked {
			t.pending += by
		}
	}
}

// bucketOf is the bucket of a change, shortened for the status: most clusters have the same changes as earlier ones.
func (t *Tally) bucketOf(change Change) *bucket {
	if found := t.changes[change]; found != nil {
		return found
	}
	shown := Change{Item: fit(change.Item, maxItem), Kind: change.Kind, From: fit(change.From, maxVersion), To: fit(change.To, maxVersion)}
	found := t.changes[shown]
	if found == nil {
		found = &bucket{change: shown}
		t.changes[shown] = found
	}
	return found
}

func (t *Tally) takeChanges(e *entry) {
	t.notePending(e, -1)
	for i := range e.changes {
		from, at := e.changes[i].bucket, e.changes[i].at
		last := len(from.members) - 1
		moved := from.members[last]
		from.members[at] = moved
		moved.entry.changes[moved.at].at = at
		from.members[last] = member{}
		from.members = from.members[:last]
		if last == 0 {
			delete(t.changes, from.change)
		}
	}
	e.changes = nil
}

// Pending are the changes that would be made, and their number without blocked ones: by item, kind and versions, at
// most 50. Of more than that, those with the most clusters are returned.
func (t *Tally) Pending() (changes []kubermaticv1.PendingChange, count int32) {
	for _, one := range t.changes {
		changes = append(changes, kubermaticv1.PendingChange{
			Item: one.change.Item, Change: one.change.Kind, From: one.change.From, To: one.change.To,
			Clusters: int32(len(one.members)), Example: fit(one.exampleOf(), maxName),
		})
	}
	return fewest(changes), int32(min(t.pending, maxCount))
}

// fewest returns at most 50 changes, in order.
func fewest(changes []kubermaticv1.PendingChange) []kubermaticv1.PendingChange {
	if len(changes) > maxPending {
		slices.SortFunc(changes, func(a, b kubermaticv1.PendingChange) int {
			return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), compareChanges(a, b))
		})
		changes = slices.Clone(changes[:maxPending])
	}
	slices.SortFunc(changes, compareChanges)
	return changes
}

func compareChanges(a, b kubermaticv1.PendingChange) int {
	return cmp.Or(
		strings.Compare(a.Item, b.Item), cmp.Compare(a.Change, b.Change), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To),
	)
}

// GroupStatuses are the groups for the status, according to a decision.
func (t *Tally) GroupStatuses(strategy Strategy, decision Decision) []kubermaticv1.GroupStatus {
	statuses := make([]kubermaticv1.GroupStatus, 0, len(strategy.Groups))
	for i, counts := range t.GroupCounts(strategy) {
		statuses = append(statuses, kubermaticv1.GroupStatus{Name: strategy.Groups[i].Name, State: decision.Groups[i], Counts: counts})
	}
	return statuses
}

// SumPending sums up the pending changes of seeds, at most 50.
func SumPending(seeds ...[]kubermaticv1.PendingChange) []kubermaticv1.PendingChange {
	sums := map[Change]*kubermaticv1.PendingChange{}
	for _, seed := range seeds {
		for _, change := range seed[:min(len(seed), maxPending)] {
			key := Change{Item: fit(change.Item, maxItem), Kind: change.Change, From: fit(change.From, maxVersion), To: fit(change.To, maxVersion)}
			if sums[key] == nil {
				sums[key] = &kubermaticv1.PendingChange{
					Item: key.Item, Change: key.Kind, From: key.From, To: key.To, Example: fit(change.Example, maxName),
				}
			}
			sum := int64(sums[key].Clusters) + max(int64(change.Clusters), 0)
			sums[key].Clusters = int32(min(sum, maxCount))
		}
	}
	var changes []kubermaticv1.PendingChange
	for _, change := range sums {
		changes = append(changes, *change)
	}
	return fewest(changes)
}

// SumClusters joins the rows of seeds, which the argument has by name of the seed: failed clusters first, at most 50.
// Rows whose state is no problem are omitted.
func SumClusters(seeds map[string][]kubermaticv1.SetClusterStatus) []kubermaticv1.SetClusterStatus {
	var rows []kubermaticv1.SetClusterStatus
	for seed, clusters := range seeds {
		for _, row := range clusters[:min(len(clusters), maxRows)] {
			if !slices.Contains(troubledStates, row.State) {
				continue
			}
			trouble := bounded(Trouble{Item: row.Item, Reason: row.Reason, Message: row.Message})
			rows = append(rows, kubermaticv1.SetClusterStatus{
				Name: fit(row.Name, maxName), Seed: seed, Group: fit(row.Group, maxItem), State: row.State,
				Item: trouble.Item, Reason: trouble.Reason, Message: trouble.Message, Cause: fit(row.Cause, maxItem),
			})
		}
	}
	slices.SortFunc(rows, func(a, b kubermaticv1.SetClusterStatus) int {
		return cmp.Or(
			cmp.Compare(slices.Index(troubledStates, a.State), slices.Index(troubledStates, b.State)),
			strings.Compare(a.Seed, b.Seed), strings.Compare(a.Name, b.Name),
		)
	})
	return rows[:min(len(rows), maxRows)]
}
