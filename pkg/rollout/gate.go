package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// RowState is how much the status of a seed's copy says.
type RowState string

const (
	// RowSynced: it speaks of the copy and the catalogues that the master wants there.
	RowSynced RowState = "Synced"
	// RowUnreached: it did when the seed was reached last.
	RowUnreached RowState = "Unreached"
	// RowLagging: it speaks of others, or there is none.
	RowLagging RowState = "Lagging"
)

// Row is what the master knows of one seed.
type Row struct {
	// Seed is its name.
	Seed string
	// State of the row.
	State RowState
	// Since is when it was synced and reached last, or when it was first waited for.
	Since time.Time
	// Revision, Counts, Groups, Reason (of Ready) and Removal are from the status of the copy. Other people's
	// clusters wrote them.
	Revision string
	Counts   kubermaticv1.ClusterCounts
	Groups   []kubermaticv1.GroupStatus
	Reason   string
	Removal  *kubermaticv1.PendingRemoval
}

// Fleet is how a set stands on all seeds together.
type Fleet struct {
	// Gate is how many groups every seed may open: the value of annotation gate for the seeds in Gated.
	Gate int
	// Gated are the seeds that Gate is for: those whose row is synced. All others keep the gate that they have.
	Gated []string
	// LeftOut are the seeds that were not synced for progressDeadline: they don't count. Awaited are those
	// that were not for a shorter time: no group opens past the first while one lags.
	LeftOut, Awaited []string
	// Counts and Groups are summed over the seeds that count.
	Counts kubermaticv1.ClusterCounts
	Groups []kubermaticv1.GroupStatus
	// Reason of condition Ready, and its message: Complete is the one that makes it True.
	Reason, Message string
}

// Gate says how many groups each seed may open. Approved is what Strategy.ReadApproval gave for the revision that
// FleetRevision gives.
func Gate(strategy Strategy, rows []Row, approved int, now time.Time) Fleet {
	fleet := Fleet{}
	sums := newSums(strategy)
	lagging := 0
	for i := range rows {
		row := &rows[i]
		known := row.State != RowLagging && sums.knows(row)
		switch {
		case row.State == RowSynced && known:
			fleet.Gated = append(fleet.Gated, row.Seed)
		case now.Sub(row.Since) >= strategy.ProgressDeadline():
			fleet.LeftOut = append(fleet.LeftOut, row.Seed)
			continue
		default:
			fleet.Awaited = append(fleet.Awaited, row.Seed)
		}
		if !known {
			lagging++
			continue
		}
		sums.add(row)
	}
	counts, total := sums.counts()
	found := judge(strategy, counts, total, permit{
		groups: len(strategy.Groups), approved: approved, evidence: true, unknown: lagging,
	})
	fleet.Gate, fleet.Counts, fleet.Reason, fleet.Message = found.groups, total, found.reason, found.message
	for i, group := range strategy.Groups {
		fleet.Groups = append(fleet.Groups, kubermaticv1.GroupStatus{Name: group.Name, State: found.states[i], Counts: counts[i]})
	}
	fleet.sumUp(rows)
	return fleet
}

// sumUp mends reason and message by what is not in counts.
func (f *Fleet) sumUp(rows []Row) {
	if f.Reason == kubermaticv1.ReasonRollingOut && f.Counts.Moving == 0 {
		f.stopped(rows)
	}
	var notes []string
	if len(f.LeftOut) > 0 {
		notes = append(notes, "left out, since their status is too old: "+text.Names(f.LeftOut, 5))
	}
	if len(f.Awaited) > 0 {
		notes = append(notes, "not synced yet: "+text.Names(f.Awaited, 5))
	}
	if len(notes) == 0 {
		return
	}
	if f.Reason == kubermaticv1.ReasonComplete || f.Counts.Selected == 0 {
		f.Reason = kubermaticv1.ReasonSeedsBehind
	}
	f.Message = strings.Join(append([]string{f.Message}, notes...), "; ")
}

// stopped says what stops the seeds where nothing moves although it may: a percentage of failures is less on one seed.
func (f *Fleet) stopped(rows []Row) {
	for _, reason := range []string{kubermaticv1.ReasonHalted, kubermaticv1.ReasonRemovalNeedsApproval} {
		var seeds []string
		for i := range rows {
			if rows[i].Reason == reason && slices.Contains(f.Gated, rows[i].Seed) {
				seeds = append(seeds, rows[i].Seed)
			}
		}
		if len(seeds) > 0 {
			f.Reason, f.Message = reason, fmt.Sprintf("%s on %s; %s", reason, text.Names(seeds, 5), f.Message)
			return
		}
	}
}

// sums are counts of seeds. What a seed says is bounded: no number of it takes others' clusters away.
type sums struct {
	strategy Strategy
	groups   [][9]int64
	total    [9]int64
}

func newSums(strategy Strategy) *sums {
	return &sums{strategy: strategy, groups: make([][9]int64, len(strategy.Groups))}
}

// knows says whether a row has the groups of the strategy.
func (s *sums) knows(row *Row) bool {
	if len(row.Groups) != len(s.strategy.Groups) {
		return false
	}
	for i := range row.Groups {
		if row.Groups[i].Name != s.strategy.Groups[i].Name {
			return false
		}
	}
	return true
}

func (s *sums) add(row *Row) {
	for i := range row.Groups {
		sum(&s.groups[i], row.Groups[i].Counts)
	}
	sum(&s.total, row.Counts)
}

// counts are the sums of the groups, and those in all.
func (s *sums) counts() (groups []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) {
	for i := range s.groups {
		groups = append(groups, toCounts(s.groups[i]))
	}
	return groups, toCounts(s.total)
}

func sum(to *[9]int64, counts kubermaticv1.ClusterCounts) {
	for i, number := range []int32{
		counts.Selected, counts.Current, counts.Moving, counts.Behind, counts.Failed, counts.Sick, counts.Away, counts.Blocked, counts.New,
	} {
		to[i] += max(int64(number), 0)
	}
}

func toCounts(from [9]int64) kubermaticv1.ClusterCounts {
	at := func(i int) int32 { return int32(min(from[i], math.MaxInt32)) }
	return kubermaticv1.ClusterCounts{
		Selected: at(0), Current: at(1), Moving: at(2), Behind: at(3), Failed: at(4), Sick: at(5), Away: at(6), Blocked: at(7), New: at(8),
	}
}

// FleetRevision sums the revisions of the seeds up, but of those that lag: the one that they all have, or a hash
// over them. It is what annotation approve on the master speaks of.
func FleetRevision(rows []Row) string {
	var revisions []string
	for i := range rows {
		if rows[i].State != RowLagging && rows[i].Revision != "" {
			revisions = append(revisions, rows[i].Revision)
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
