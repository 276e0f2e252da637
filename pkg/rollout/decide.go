package rollout

import (
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// Decision is what a seed does next.
type Decision struct {
	// Groups are how the groups of the strategy stand.
	Groups []kubermaticv1.GroupState
	// Open is the group whose clusters move, or NoGroup.
	Open int
	// Move are the clusters that may be written now, in order. The caller Puts each as Moving before it
	// decides again.
	Move []string
	// Reason of condition Ready, and its message: Complete is the one that makes it True.
	Reason, Message string
}

// Decide says which clusters of a seed may move now. All clusters are to be in the Tally, with the groups that
// this strategy gives them: after a start, nothing is decided before.
func Decide(strategy Strategy, tally *Tally, gate Allowance) Decision {
	counts, may := tally.GroupCounts(strategy), gate.permit(strategy)
	may.excesses = excesses(strategy, counts)
	found := judge(strategy, counts, tally.total, may)
	decision := Decision{Groups: found.states, Open: found.open, Reason: found.reason, Message: found.message}
	if found.open == NoGroup {
		return decision
	}
	group := &tally.groups[found.open]
	for _, e := range group.again.first(len(group.again.entries)) {
		decision.Move = append(decision.Move, e.cluster)
	}
	places := strategy.Groups[found.open].MaxConcurrency.Places(int(group.counts.Selected)) - int(group.counts.Moving)
	for _, e := range group.behind.first(places) {
		decision.Move = append(decision.Move, e.cluster)
	}
	if group.held > 0 && tally.total.Moving == 0 && len(decision.Move) == 0 {
		decision.Reason = kubermaticv1.ReasonRemovalNeedsApproval
		decision.Message = fmt.Sprintf("removals in %s of group %q wait for annotation %s",
			text.Count(group.held, "cluster"), strategy.Groups[found.open].Name, kubermaticv1.AnnotationRemovalApproved)
	}
	return decision
}

// permit is what an annotation gate lets open.
func (a Allowance) permit(strategy Strategy) permit {
	switch {
	case a == ByRule:
		return permit{groups: len(strategy.Groups), approved: NoGroup, evidence: true}
	case a == FirstOnly && strategy.Groups[0].Start == kubermaticv1.StartAutomatic:
		return permit{groups: 1}
	}
	return permit{groups: max(int(a), 0)}
}
