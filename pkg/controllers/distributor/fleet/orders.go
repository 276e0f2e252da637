package fleet

import (
	"cmp"
	"strings"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// decision has the state of a set on all seeds, and the orders for their workers.
type decision struct {
	fleet rollout.Fleet
	// counted are the seeds whose rows count, for all reports and decisions.
	counted  map[string]bool
	revision string
	removal  *v1.PendingRemoval
	// approval is why annotation approve is not carried out; nil if it is, or there is none.
	approval error
	// leaveOut are the clusters of annotation leave-out, and leaveOutProblem why it can't be read; nil if it can.
	leaveOut        rollout.LeaveOut
	leaveOutProblem error
	orders          map[string]copies.Order
	// deleting says that the copies are ordered to be deleted; gone that none is left.
	deleting, gone bool
	// recheck is the delay after which a seed is left out if it does not report; 0: never.
	recheck time.Duration
}

// decide is pure. If spec.rollout can't be read, which the refusal of the set reports, no gate changes and no seed
// counts, but a deletion continues. The same applies if the cache has a stub of the set.
func decide(set *v1.AddonSet, f *facts) decision {
	d := decision{counted: map[string]bool{}, orders: map[string]copies.Order{}}
	d.deleting = set.DeletionTimestamp != nil && (isConfirmed(set) || begun(f) || madeNothing(f))
	d.leaveOut, d.leaveOutProblem = rollout.ReadLeaveOut(set.Annotations[v1.AnnotationLeaveOut])
	strategy, err := rollout.NewStrategy(set.Spec.Rollout)
	if err != nil || budget.IsStub(set) {
		d.order(set, f, false)
		return d
	}
	rows := rowsOf(f)
	d.fleet = rollout.SelectRows(strategy, rows, f.now)
	for i := range d.fleet.Counted {
		d.counted[d.fleet.Counted[i].Seed] = true
	}
	d.revision, d.removal = d.fleet.Revision(), d.fleet.Removal()
	approved, err := strategy.ReadApproval(set.Annotations[v1.AnnotationApprove], d.revision)
	d.approval = err
	d.fleet = rollout.Gate(strategy, d.fleet, approved)
	d.order(set, f, settled(f, strategy))
	for i := range rows {
		if left := rows[i].Since.Add(strategy.ProgressDeadline()).Sub(f.now); rows[i].State != rollout.RowSynced && left > 0 {
			d.recheck = cmp.Or(min(cmp.Or(d.recheck, left), left), left)
		}
	}
	return d
}

// settled says whether every seed was heard since the start of this process, or awaited long enough: gates would
// otherwise close and open again.
func settled(f *facts, strategy rollout.Strategy) bool {
	for i := range f.seeds {
		if !f.seeds[i].heard && f.now.Sub(f.seeds[i].since) < strategy.ProgressDeadline() {
			return false
		}
	}
	return true
}

// rowsOf are the seeds' rows for the rule.
func rowsOf(f *facts) []rollout.Row {
	rows := make([]rollout.Row, 0, len(f.seeds))
	for i := range f.seeds {
		seed := &f.seeds[i]
		row := rollout.Row{Seed: seed.name, State: rollout.RowLagging, Since: seed.since}
		switch {
		case seed.synced && seed.reached:
			row.State = rollout.RowSynced
		case seed.synced:
			row.State = rollout.RowUnreached
		}
		said := &seed.row.Status
		row.Revision, row.Groups, row.Removal, row.Clusters = said.Revision, said.Groups, said.Removal, said.Clusters
		if said.Counts != nil {
			row.Counts = *said.Counts
		}
		for _, condition := range said.Conditions {
			row.Reason = condition.Reason
		}
		rows = append(rows, row)
	}
	return rows
}

// order computes the orders for the seeds that were heard, and for all once copies must be deleted. For a stub, which
// may lack annotations, copies stay as they are.
func (d *decision) order(set *v1.AddonSet, f *facts, settled bool) {
	gated := map[string]bool{}
	for _, seed := range d.fleet.Gated {
		gated[seed] = settled && f.Refusal == ""
	}
	d.gone = d.deleting
	for i := range f.seeds {
		seed := &f.seeds[i]
		d.gone = d.gone && seed.row.Gone
		if (seed.row.UID == "" || budget.IsStub(set)) && !d.deleting {
			continue
		}
		order := copies.Order{UID: f.uid, Generation: f.Generation, Delete: d.deleting, RemovalApproved: d.approvedRemoval(set, seed)}
		order.LeaveOut = strings.Join(d.leaveOut, ",")
		if revision := seed.row.Status.Revision; gated[seed.name] && revision != "" {
			order.Gate = rollout.GateValue(revision, d.fleet.Gate)
		}
		d.orders[seed.name] = order
	}
}

// approvedRemoval is the seed's own token, once annotation removal-approved of the set has it. It stays on the copy
// for as long as the set has the annotation, since the seed shows no token when the removals are done.
func (d *decision) approvedRemoval(set *v1.AddonSet, seed *seedFacts) string {
	approved := set.Annotations[v1.AnnotationRemovalApproved]
	switch {
	case approved == "":
		return ""
	case d.counted[seed.name] && seed.row.Status.Removal != nil && rollout.Approves(approved, seed.row.Status.Removal.Word):
		return seed.row.Status.Removal.Word
	}
	return seed.row.RemovalApproved
}

// unapproved are the seeds where removals wait although the set has annotation removal-approved: it has another token.
func (d *decision) unapproved(set *v1.AddonSet, f *facts) (seeds []string) {
	approved := set.Annotations[v1.AnnotationRemovalApproved]
	if approved == "" {
		return nil
	}
	for i := range f.seeds {
		removal := f.seeds[i].row.Status.Removal
		if d.counted[f.seeds[i].name] && removal != nil && !rollout.Approves(approved, removal.Word) {
			seeds = append(seeds, f.seeds[i].name)
		}
	}
	return seeds
}

func isConfirmed(set *v1.AddonSet) bool {
	return set.Annotations[v1.AnnotationConfirmDeletion] == set.Name
}

// begun says whether a copy was ordered to be deleted before: that can't be reversed.
func begun(f *facts) bool {
	for i := range f.seeds {
		if f.seeds[i].row.Confirmed || f.seeds[i].row.Gone {
			return true
		}
	}
	return false
}

// madeNothing says whether the set has nothing on any seed, by known rows.
func madeNothing(f *facts) bool {
	for i := range f.seeds {
		seed := &f.seeds[i]
		said := &seed.row.Status
		if !seed.reached || seed.row.UID == "" || seed.row.There && (said.Counts == nil || said.Counts.Selected > 0) {
			return false
		}
	}
	return true
}
