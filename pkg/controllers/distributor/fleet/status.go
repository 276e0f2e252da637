package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

const (
	// seedsListed is how many seeds a status has rows for.
	seedsListed = 200
	// messageLength is the longest message of a seed's row.
	messageLength = 512
	// seedsNamed is how many seeds a message names.
	seedsNamed = 5
)

// statusOf is the whole status of a set, and its only writer.
func statusOf(set *v1.AddonSet, f *facts, d *decision) v1.AddonSetStatus {
	next := v1.AddonSetStatus{
		Conditions: slices.Clone(set.Status.Conditions), ObservedGeneration: set.Generation, Catalogues: f.Catalogues,
		Revision: d.revision, StartedAt: startedAt(set, f, d), Counts: &d.fleet.Counts, Groups: d.fleet.Groups, Removal: d.removal,
	}
	pending := make([][]v1.PendingChange, 0, len(f.seeds))
	clusters := map[string][]v1.SetClusterStatus{}
	var count int64
	for i := range f.seeds {
		seed := &f.seeds[i]
		said := &seed.row.Status
		if i < seedsListed {
			next.Seeds = append(next.Seeds, rowOf(seed))
		}
		if d.counted[seed.name] {
			pending, clusters[seed.name] = append(pending, said.Pending), said.Clusters
			count += int64(said.PendingCount)
		}
	}
	next.Pending, next.Clusters = rollout.SumPending(pending...), rollout.SumClusters(clusters)
	next.PendingCount = int32(min(count, math.MaxInt32))
	for _, condition := range []metav1.Condition{ready(set, f, d, next.PendingCount, next.Clusters), deletionBlocked(set, d)} {
		if condition.Reason == "" {
			meta.RemoveStatusCondition(&next.Conditions, condition.Type)
			continue
		}
		condition.ObservedGeneration = set.Generation
		conditions.Set(&next.Conditions, condition)
	}
	rollout.Shrink(&next)
	return next
}

// startedAt is when the first seed began to roll the revision; impossible times are ignored.
func startedAt(set *v1.AddonSet, f *facts, d *decision) *metav1.Time {
	var first *metav1.Time
	for i := range f.seeds {
		at := f.seeds[i].row.Status.StartedAt
		if at == nil || !d.counted[f.seeds[i].name] || d.revision == "" || at.Time.After(f.now) || at.Time.Before(set.CreationTimestamp.Time) {
			continue
		}
		if first == nil || at.Before(first) {
			first = at
		}
	}
	return first.DeepCopy()
}

// rowOf is a seed's row of the status.
func rowOf(seed *seedFacts) v1.SetSeedStatus {
	said := &seed.row.Status
	row := v1.SetSeedStatus{Name: seed.name, Synced: seed.synced && seed.reached, Revision: said.Revision, Counts: said.Counts.DeepCopy()}
	for _, group := range said.Groups {
		if group.State != v1.GroupWaiting && group.State != v1.GroupAwaitingApproval {
			row.Group = group.Name // the last one that is or was open
		}
	}
	row.Message = text.Cut(text.Line(trouble(seed)), messageLength-len("…"))
	return row
}

// trouble is the problem on a seed; empty if there is none.
func trouble(seed *seedFacts) string {
	switch {
	case !seed.heard:
		return "not reached yet"
	case !seed.reached:
		return seed.problem
	case seed.row.Failure != "":
		return seed.row.Failure
	case !seed.synced && seed.row.There && seed.row.Status.ObservedGeneration == 0:
		return "the seed has not evaluated the set yet"
	case !seed.synced:
		return "the set, or a catalogue that it depends on, is not on the seed yet"
	}
	if said := meta.FindStatusCondition(seed.row.Status.Conditions, v1.ConditionReady); said != nil && said.Status != metav1.ConditionTrue {
		return said.Reason + ": " + said.Message
	}
	return ""
}

// ready is condition Ready.
func ready(set *v1.AddonSet, f *facts, d *decision, pending int32, listed []v1.SetClusterStatus) metav1.Condition {
	condition := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: d.fleet.Reason, Message: d.fleet.Message}
	switch {
	case d.deleting:
		condition.Reason, condition.Message = v1.ReasonRemoving, "its installations are removed as spec.removal says; "+waitedFor(f)
		return condition
	case f.Refusal != "":
		condition.Reason, condition.Message = f.Reason, f.Refusal
		if f.Reason == v1.ReasonInvalid || f.Reason == v1.ReasonSecretNotAllowed {
			condition.Message += "; the seeds keep the last valid copy"
		}
		return condition
	case set.Spec.Paused:
		condition.Reason = v1.ReasonPaused
		condition.Message = fmt.Sprintf("%s %s pending; %s", text.Count(int(pending), "change"), text.Verb(int(pending), "is", "are"),
			condition.Message)
	}
	notes := slices.Concat(f.SecretProblems, f.SecretWarnings)
	for _, problem := range []error{d.approval, d.leaveOutProblem} {
		if problem != nil {
			notes = append(notes, problem.Error())
		}
	}
	if seeds := d.unapproved(set, f); len(seeds) > 0 {
		notes = append(notes, fmt.Sprintf("annotation %s does not approve the removals that wait on %s: its token is for other removals, or "+
			"the seed changed the token since; status.removal.word has the present "+
			"one", v1.AnnotationRemovalApproved, text.Names(seeds, seedsNamed)))
	}
	notes = append(notes, d.leaveOutNotes(set, listed)...)
	if len(notes) > 0 {
		condition.Message = strings.Join([]string{condition.Message, text.First(notes, seedsNamed)}, "; ")
	}
	if condition.Reason == v1.ReasonComplete && len(f.SecretProblems) > 0 {
		condition.Reason = v1.ReasonSeedsBehind
	}
	if condition.Reason == v1.ReasonComplete {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// leaveOutNotes name the entries of annotation leave-out whose cluster or item the set does not have.
func (d *decision) leaveOutNotes(set *v1.AddonSet, listed []v1.SetClusterStatus) (notes []string) {
	if unknown := d.leaveOut.Unknown(listed); len(unknown) > 0 && d.knowsAll(listed) {
		notes = append(notes, fmt.Sprintf("annotation %s names clusters that the set does not have: %s: correct or remove these names",
			v1.AnnotationLeaveOut, text.Names(unknown, seedsNamed)))
	}
	if unknown := d.leaveOut.UnknownItems(&set.Spec); len(unknown) > 0 {
		notes = append(notes, fmt.Sprintf("annotation %s names items that the set does not have: %s: correct or remove these entries",
			v1.AnnotationLeaveOut, text.Names(unknown, seedsNamed)))
	}
	return notes
}

// knowsAll says whether seeds listed all clusters that are left out: no status is outdated, and no list is truncated.
func (d *decision) knowsAll(listed []v1.SetClusterStatus) bool {
	const most = 50
	return len(d.fleet.Awaited)+len(d.fleet.LeftOut) == 0 && d.fleet.Counts.New == 0 && d.fleet.Counts.Selected > 0 && len(listed) < most
}

// waitedFor names the seeds that still have a copy of a set that is being deleted.
func waitedFor(f *facts) string {
	var names []string
	for i := range f.seeds {
		seed := &f.seeds[i]
		if seed.row.Gone {
			continue
		}
		name := seed.name
		if !seed.reached {
			name += " (" + cmp.Or(seed.problem, "not reached yet") + ")"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("%d of %d seeds are done; waits for %s",
		len(f.seeds)-len(names), len(f.seeds), cmp.Or(text.Names(names, seedsNamed), "none"))
}

// deletionBlocked is condition DeletionBlocked, of sets that are being deleted.
func deletionBlocked(set *v1.AddonSet, d *decision) metav1.Condition {
	condition := metav1.Condition{Type: v1.ConditionDeletionBlocked}
	switch {
	case set.DeletionTimestamp == nil:
	case d.deleting:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v1.ReasonRemoving, "its copies are deleted"
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1.ReasonNotConfirmed
		condition.Message = fmt.Sprintf("it has installations, and stays in use: annotate it with %s=%s to remove them as spec.removal says",
			v1.AnnotationConfirmDeletion, set.Name)
	}
	return condition
}
