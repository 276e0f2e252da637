package rollout

import (
	"math"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// ClustersAtMost is above the number of clusters that a seed has in a group, and bounds the number that it reports.
const ClustersAtMost = 100_000

// sums are counts of seeds. The numbers of a seed are bounded: none hides other seeds' clusters, and none excuses
// their failures (ADR 68).
type sums struct {
	strategy Strategy
	groups   [][9]int64
	total    [9]int64
	// alone is, by group, the first seed above a percentage limit of its own clusters.
	alone []*excess
}

// sumsOf sums rows with the groups of the strategy. Sick clusters count as failed if a cluster of another seed
// reports the same cause: no seed knows the clusters of another one.
func sumsOf(strategy Strategy, rows []Row) *sums {
	s := &sums{strategy: strategy, groups: make([][9]int64, len(strategy.Groups)), alone: make([]*excess, len(strategy.Groups))}
	among := causes{}
	for i := range rows {
		among.noteRow(&rows[i])
	}
	for i := range rows {
		s.add(&rows[i], among)
	}
	return s
}

func (s *sums) add(row *Row, among causes) {
	own, grouped := causes{}, [9]int64{}
	own.noteRow(row)
	for i := range row.Groups {
		said := plausible(own.blamed(row.Groups[i].Counts, i, among))
		sum(&s.groups[i], said)
		sum(&grouped, said)
		limit := s.strategy.Groups[i].MaxFailures
		if s.alone[i] == nil && limit.percent && limit.isExceeded(said) {
			s.alone[i] = &excess{counts: said, seed: row.Seed}
		}
	}
	// Clusters in no group are in addition to those in groups.
	total := toCounts(grouped)
	sum(&s.total, plausible(highest(total, own.blamed(row.Counts, NoGroup, among))))
}

// excesses are, by group, excessive failures; nil if there are none. A percentage applies to the clusters of each
// seed, so that the numbers of one seed do not raise another's limit.
func (s *sums) excesses(counts []kubermaticv1.ClusterCounts) []*excess {
	found := make([]*excess, len(counts))
	for i, all := range excesses(s.strategy, counts) {
		if found[i] = s.alone[i]; found[i] == nil {
			found[i] = all
		}
	}
	return found
}

// counts are the sums by group, and in total.
func (s *sums) counts() (groups []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) {
	for i := range s.groups {
		groups = append(groups, toCounts(s.groups[i]))
	}
	return groups, toCounts(s.total)
}

// plausible are counts that clusters can have: each is in one state, and one that has only blocked items is in none
// of the others.
func plausible(said kubermaticv1.ClusterCounts) kubermaticv1.ClusterCounts {
	numbers := toNumbers(said)
	inStates := int64(0)
	for i, number := range numbers {
		numbers[i] = min(max(number, 0), ClustersAtMost)
		if i != atSelected && i != atBlocked {
			inStates += numbers[i]
		}
	}
	numbers[atSelected] = min(max(numbers[atSelected], inStates), inStates+numbers[atBlocked])
	return toCounts(numbers)
}

// highest has the higher number of both counts.
func highest(one, other kubermaticv1.ClusterCounts) kubermaticv1.ClusterCounts {
	numbers := toNumbers(one)
	for i, number := range toNumbers(other) {
		numbers[i] = max(numbers[i], number)
	}
	return toCounts(numbers)
}

// atSelected and atBlocked are the positions of these numbers in counts.
const (
	atSelected = 0
	atBlocked  = 7
)

func toNumbers(counts kubermaticv1.ClusterCounts) (numbers [9]int64) {
	for i, number := range []int32{
		counts.Selected, counts.Current, counts.Moving, counts.Behind, counts.Failed, counts.Sick, counts.Away, counts.Blocked, counts.New,
	} {
		numbers[i] = int64(number)
	}
	return numbers
}

func sum(to *[9]int64, counts kubermaticv1.ClusterCounts) {
	for i, number := range toNumbers(counts) {
		to[i] += number
	}
}

func toCounts(from [9]int64) kubermaticv1.ClusterCounts {
	at := func(i int) int32 { return int32(min(from[i], math.MaxInt32)) }
	return kubermaticv1.ClusterCounts{
		Selected: at(0), Current: at(1), Moving: at(2), Behind: at(3), Failed: at(4), Sick: at(5), Away: at(6), Blocked: at(7), New: at(8),
	}
}
