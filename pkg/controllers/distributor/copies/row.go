package copies

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// Limits of a seed's status, above those of any real one.
const (
	rowsAtMost    = 50
	groupsAtMost  = 17
	nameLength    = 253
	itemLength    = 63
	tokenLength   = 128
	messageLength = 512
)

// cut limits a status to what a real seed can have: only its own clusters, with counts and texts of sane sizes, and
// no row without the fields that the CRD requires: otherwise the master's status would be refused.
func cut(seed string, said *v1.AddonSetStatus) v1.AddonSetStatus {
	found := v1.AddonSetStatus{
		ObservedGeneration: said.ObservedGeneration, Catalogues: line(said.Catalogues, tokenLength), Revision: revision(said.Revision),
		StartedAt: said.StartedAt.DeepCopy(), Counts: counts(said.Counts), PendingCount: number(said.PendingCount),
	}
	if ready := meta.FindStatusCondition(said.Conditions, v1.ConditionReady); ready != nil {
		found.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: ready.Status, Reason: line(ready.Reason, tokenLength), Message: line(ready.Message, messageLength),
			ObservedGeneration: ready.ObservedGeneration,
		}}
	}
	for _, group := range said.Groups[:min(len(said.Groups), groupsAtMost)] {
		if group.Name == "" || !slices.Contains(groupStates, group.State) {
			continue
		}
		found.Groups = append(found.Groups, v1.GroupStatus{
			Name: line(group.Name, itemLength), State: group.State, Counts: *counts(&group.Counts),
		})
	}
	for _, change := range said.Pending[:min(len(said.Pending), rowsAtMost)] {
		if change.Item == "" || change.Clusters <= 0 || !slices.Contains(changes, change.Change) {
			continue
		}
		found.Pending = append(found.Pending, v1.PendingChange{
			Item: line(change.Item, itemLength), Change: change.Change, From: line(change.From, tokenLength), To: line(change.To, tokenLength),
			Clusters: number(change.Clusters), Example: line(change.Example, nameLength),
		})
	}
	for _, cluster := range said.Clusters[:min(len(said.Clusters), rowsAtMost)] {
		if cluster.Name == "" || !slices.Contains(clusterStates, cluster.State) {
			continue
		}
		found.Clusters = append(found.Clusters, v1.SetClusterStatus{
			Name: line(cluster.Name, nameLength), Seed: seed, Group: line(cluster.Group, itemLength), State: cluster.State,
			Item: line(cluster.Item, itemLength), Reason: line(cluster.Reason, tokenLength), Message: line(cluster.Message, messageLength),
			Cause: line(cluster.Cause, itemLength),
		})
	}
	found.Removal = removal(said.Removal)
	return found
}

func removal(said *v1.PendingRemoval) *v1.PendingRemoval {
	if said == nil || said.Word == "" || said.Count <= 0 {
		return nil
	}
	found := &v1.PendingRemoval{Word: line(said.Word, 64), Count: number(said.Count)}
	for _, name := range said.Clusters[:min(len(said.Clusters), rollout.RemovalClusters)] {
		found.Clusters = append(found.Clusters, line(name, nameLength))
	}
	return found
}

var (
	groupStates = []v1.GroupState{
		v1.GroupWaiting, v1.GroupAwaitingApproval, v1.GroupOpen, v1.GroupNoEvidence, v1.GroupDone, v1.GroupHalted,
	}
	changes       = []v1.ChangeKind{v1.ChangeInstall, v1.ChangeUpdate, v1.ChangeRemove, v1.ChangeBlocked}
	clusterStates = []v1.ClusterState{
		v1.ClusterCurrent, v1.ClusterMoving, v1.ClusterBehind, v1.ClusterFailed, v1.ClusterSick, v1.ClusterAway, v1.ClusterBlocked,
		v1.ClusterNew,
	}
)

// hasGroups says whether a status has the groups of a set: those of its rollout, and rest. A status with other groups
// does not count, even if its generation is the newest.
func hasGroups(spec *v1.AddonSetSpec, said []v1.GroupStatus) bool {
	var groups []v1.RolloutGroup
	if spec.Rollout != nil {
		groups = spec.Rollout.Groups
	}
	if len(said) != len(groups)+1 || said[len(groups)].Name != v1.GroupRest {
		return false
	}
	for i := range groups {
		if string(groups[i].Name) != said[i].Name {
			return false
		}
	}
	return true
}

func number(said int32) int32 { return max(0, min(said, rollout.ClustersAtMost)) }

func counts(said *v1.ClusterCounts) *v1.ClusterCounts {
	if said == nil {
		return nil
	}
	return &v1.ClusterCounts{
		Selected: number(said.Selected), Current: number(said.Current), Moving: number(said.Moving), Behind: number(said.Behind),
		Failed: number(said.Failed), Sick: number(said.Sick), Away: number(said.Away), Blocked: number(said.Blocked), New: number(said.New),
	}
}

// line is one line of at most this many bytes.
func line(said string, most int) string {
	said = text.Line(said[:min(len(said), 4*most)])
	if len(said) <= most {
		return said
	}
	return text.Cut(said, most-len("…"))
}

// revision is one that is allowed in the gate's annotation; any other is dropped.
func revision(said string) string {
	if len(said) > tokenLength {
		return ""
	}
	for _, char := range []byte(said) {
		letter := 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9'
		if !letter && char != ':' && char != '-' && char != '.' && char != '_' {
			return ""
		}
	}
	return said
}
