package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// RowState reports how current the status of a seed's copy is.
type RowState string

const (
	// RowSynced: the status describes the master's present copy and catalogues for the seed.
	RowSynced RowState = "Synced"
	// RowUnreached: it was synced when the seed was last reached.
	RowUnreached RowState = "Unreached"
	// RowLagging: the status describes another copy or other catalogues, or there is no status.
	RowLagging RowState = "Lagging"
)

// Row is the master's information about one seed.
type Row struct {
	// Seed is its name.
	Seed string
	// State of the row.
	State RowState
	// Since is when it was last synced and reached, or when the master began to wait for it.
	Since time.Time
	// Revision, Counts, Groups, Reason (of Ready), Removal and Clusters are from the status of the copy. User clusters
	// influence these fields, so they are not trusted.
	Revision string
	Counts   kubermaticv1.ClusterCounts
	Groups   []kubermaticv1.GroupStatus
	Reason   string
	Removal  *kubermaticv1.PendingRemoval
	// Clusters are the seed's clusters with problems.
	Clusters []kubermaticv1.SetClusterStatus
}

// Fleet is the state of a set on all seeds together.
type Fleet struct {
	// Counted are the rows that all reports and decisions are based on.
	Counted []Row
	// Gate is the number of groups that every seed may open: the value of annotation gate for the seeds in Gated.
	Gate int
	// Gated are the seeds that Gate is for: those whose row is synced. All others keep their present gate.
	Gated []string
	// LeftOut are the seeds that were not synced for progressDeadline: they don't count. Awaited are seeds that were not
	// synced for a shorter time: while there is one, no group after the first opens.
	LeftOut, Awaited []string
	// Counts and Groups are the sums over the seeds that count.
	Counts kubermaticv1.ClusterCounts
	Groups []kubermaticv1.GroupStatus
	// Reason of condition Ready, and its message: Complete is the one that makes it True.
	Reason, Message string
}

// SelectRows selects the rows that count: those whose status is about the present set, now or when the seed was last
// reached. Of the others, those that the master has awaited for progressDeadline are left out.
func SelectRows(strategy Strategy, rows []Row, now time.Time) Fleet {
	fleet := Fleet{}
	for i := range rows {
		row := &rows[i]
		known := row.State != RowLagging && strategy.isOf(row.Groups)
		switch {
		case row.State == RowSynced && known:
			fleet.Gated = append(fleet.Gated, row.Seed)
		case now.Sub(row.Since) >= strategy.ProgressDeadline():
			fleet.LeftOut = append(fleet.LeftOut, row.Seed)
			continue
		default:
			fleet.Awaited = append(fleet.Awaited, row.Seed)
		}
		if known {
			fleet.Counted = append(fleet.Counted, *row)
		}
	}
	return fleet
}

// Gate decides how many groups each seed of a fleet from SelectRows may open. Argument approved is the result of
// Strategy.ReadApproval for the fleet's Revision.
func Gate(strategy Strategy, fleet Fleet, approved int) Fleet {
	sums := sumsOf(strategy, fleet.Counted)
	counts, total := sums.counts()
	others := slices.ContainsFunc(fleet.Counted, func(row Row) bool { return row.Reason == kubermaticv1.ReasonNoClusterSelected })
	found := evaluate(strategy, counts, total, permit{
		groups: len(strategy.Groups), approved: approved, evidence: true, others: others,
		unknown: len(fleet.Gated) + len(fleet.Awaited) - len(fleet.Counted), excesses: sums.excesses(counts), listed: fleet.listed,
	})
	fleet.Gate, fleet.Counts, fleet.Reason, fleet.Message = found.groups, total, found.reason, found.message
	if revision := fleet.Revision(); revision != "" {
		fleet.Message = strings.ReplaceAll(fleet.Message, unnamedRevision, revision)
	}
	fleet.Groups = nil
	for i, group := range strategy.Groups {
		fleet.Groups = append(fleet.Groups, kubermaticv1.GroupStatus{Name: group.Name, State: found.states[i], Counts: counts[i]})
	}
	fleet.warn()
	fleet.sumUp()
	return fleet
}

// warn warns about groups that select no cluster, maybe because of a misspelt label, unless the message does already.
func (f *Fleet) warn() {
	if f.Counts.Selected <= 0 || f.Reason == kubermaticv1.ReasonNoEvidence || len(f.LeftOut)+len(f.Awaited) > 0 {
		return
	}
	var empty []string
	for _, group := range f.Groups[:len(f.Groups)-1] {
		if group.Counts.Selected <= 0 {
			empty = append(empty, selectsNothing(group.Name))
		}
	}
	if len(empty) > 0 {
		f.Message += "; " + text.First(empty, unprovenNamed)
	}
}

// sumUp corrects reason and message by facts that are not in counts.
func (f *Fleet) sumUp() {
	if f.Reason == kubermaticv1.ReasonRollingOut && f.Counts.Moving == 0 {
		f.stopped()
	}
	var notes []string
	if len(f.LeftOut) > 0 {
		notes = append(notes, "left out, since their status is too old: "+text.Names(f.LeftOut, 5))
	}
	if awaited := len(f.Awaited); awaited > 0 {
		notes = append(notes, fmt.Sprintf("%d of %s %s not reported on this change yet: %s", awaited,
			text.Count(awaited+len(f.Gated)+len(f.LeftOut), "seed"), text.Verb(awaited, "has", "have"), text.Names(f.Awaited, 5)))
	}
	if len(notes) == 0 {
		return
	}
	if f.Reason == kubermaticv1.ReasonComplete || f.Counts.Selected == 0 {
		f.Reason = kubermaticv1.ReasonSeedsBehind
	}
	if len(f.Counted) > 0 {
		notes = slices.Insert(notes, 0, f.Message)
	}
	f.Message = strings.Join(notes, "; ")
}

// stopped reports the reason of the seeds if nothing moves although it may.
func (f *Fleet) stopped() {
	for _, reason := range []string{kubermaticv1.ReasonHalted, kubermaticv1.ReasonRemovalNeedsApproval} {
		var seeds []string
		for i := range f.Counted {
			if row := &f.Counted[i]; row.Reason == reason && row.State == RowSynced {
				seeds = append(seeds, row.Seed)
			}
		}
		if len(seeds) > 0 {
			f.Reason, f.Message = reason, fmt.Sprintf("%s on %s; %s", reason, text.Names(seeds, 5), f.Message)
			if waits := f.Removal(); waits != nil && reason == kubermaticv1.ReasonRemovalNeedsApproval {
				f.Message = removalText(waits)
			}
			return
		}
	}
}

// isOf reports whether a seed's groups are those of the strategy.
func (s Strategy) isOf(groups []kubermaticv1.GroupStatus) bool {
	if len(groups) != len(s.Groups) {
		return false
	}
	for i := range groups {
		if groups[i].Name != s.Groups[i].Name {
			return false
		}
	}
	return true
}

// Revision combines the revisions of the seeds that count: the one that they all have, or a hash over them.
// Annotation approve on the master names it.
func (f *Fleet) Revision() string {
	var revisions []string
	for i := range f.Counted {
		if revision := f.Counted[i].Revision; revision != "" {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	if len(revisions) == 0 {
		return ""
	}
	if len(revisions) == 1 {
		return text.Cut(revisions[0], 125)
	}
	return digestOf(revisions)
}

// digestOf is a short hash over texts.
func digestOf(texts []string) string {
	hash := sha256.New()
	for _, one := range texts {
		fmt.Fprintf(hash, "%d:%s", len(one), one)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
