package rollout

import (
	"math"
	"slices"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// ClustersAtMost is above what a seed has in a group, and bounds what one says.
const ClustersAtMost = 100_000

// sums are counts of seeds. What a seed says is bounded: no number of it takes others' clusters
// away, and none excuses others' failures (ADR 68).
type sums struct {
	strategy Strategy
	groups   [][9]int64
	total    [9]int64
	// alone is, by group, the first seed that is above a limit that is a percentage, of its own
	// clusters.
	alone []*excess
}

func newSums(strategy Strategy) *sums {
	return &sums{strategy: strategy, groups: make([][9]int64, len(strategy.Groups)), alone: make([]*excess, len(strategy.Groups))}
}

// add adds a row, which has the groups of the strategy.
func (s *sums) add(row *Row) {
	var grouped [9]int64
	for i := range row.Groups {
		said := plausible(row.Groups[i].Counts)
		sum(&s.groups[i], said)
		sum(&grouped, said)
		limit := s.strategy.Groups[i].MaxFailures
		if s.alone[i] == nil && limit.percent && limit.isExceeded(said) {
			s.alone[i] = &excess{counts: said, seed: row.Seed}
		}
	}
	// Clusters in no group come on top of those in groups.
	total := toCounts(grouped)
	sum(&s.total, plausible(highest(total, row.Counts)))
}

// blamed are the rows with those sick clusters counted as failed whose reason, which may be a cluster's own, a second cluster reports
// too: no seed knows of the clusters of another one.
func blamed(rows []Row) []Row {
	report := map[string]int{}
	for i := range rows {
		for _, one := range rows[i].Clusters {
			if isOwn(one) {
				report[one.Reason]++
			}
		}
	}
	all := slices.Clone(rows)
	for i := range all {
		for _, one := range all[i].Clusters {
			at := slices.IndexFunc(all[i].Groups, func(group kubermaticv1.GroupStatus) bool { return group.Name == one.Group })
			isShared := one.State == kubermaticv1.ClusterSick && isOwn(one) && report[one.Reason] >= sharedFrom
			if !isShared || at < 0 || all[i].Groups[at].Counts.Sick <= 0 {
				continue
			}
			all[i].Groups = slices.Clone(all[i].Groups)
			for _, counts := range []*kubermaticv1.ClusterCounts{&all[i].Groups[at].Counts, &all[i].Counts} {
				counts.Sick, counts.Failed = counts.Sick-1, counts.Failed+1
			}
		}
	}
	return all
}

// isOwn says whether a cluster failed for a reason that may be its own.
func isOwn(row kubermaticv1.SetClusterStatus) bool {
	return (row.State == kubermaticv1.ClusterSick || row.State == kubermaticv1.ClusterFailed) && ownReasons[row.Reason]
}

// ownReasons are those that a cluster may have of its own. A cluster that was not Ready before its move is listed with none of them.
var ownReasons = map[string]bool{
	kubermaticv1.ReasonUnschedulable: true, kubermaticv1.ReasonRequestsTooLarge: true, kubermaticv1.ReasonSchedulingGated: true,
	kubermaticv1.ReasonQuotaExceeded: true, kubermaticv1.ReasonLimitRange: true, kubermaticv1.ReasonPodSecurity: true,
	kubermaticv1.ReasonPolicyDenied: true, kubermaticv1.ReasonWebhookRefused: true, kubermaticv1.ReasonObjectOfOthers: true,
	kubermaticv1.ReasonFieldOfOthers: true, kubermaticv1.ReasonBeingDeleted: true,
}

// excesses are, by group, which failures are too many; nil: none are. A percentage is of the
// clusters of each seed, so that none is larger for what another one says of itself.
func (s *sums) excesses(counts []kubermaticv1.ClusterCounts) []*excess {
	found := make([]*excess, len(counts))
	for i, all := range excesses(s.strategy, counts) {
		if found[i] = s.alone[i]; found[i] == nil {
			found[i] = all
		}
	}
	return found
}

// counts are the sums of the groups, and those in all.
func (s *sums) counts() (groups []kubermaticv1.ClusterCounts, total kubermaticv1.ClusterCounts) {
	for i := range s.groups {
		groups = append(groups, toCounts(s.groups[i]))
	}
	return groups, toCounts(s.total)
}

// plausible are counts that clusters can have: each is in one state, and one that has nothing but
// blocked items is in none of the others.
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

// highest are the higher ones of both counts.
func highest(one, other kubermaticv1.ClusterCounts) kubermaticv1.ClusterCounts {
	numbers := toNumbers(one)
	for i, number := range toNumbers(other) {
		numbers[i] = max(numbers[i], number)
	}
	return toCounts(numbers)
}

// Where these are among the numbers of counts.
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
