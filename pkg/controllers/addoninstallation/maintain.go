package addoninstallation

import (
	"context"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// beforeApply are the conditions whose failure leaves the user cluster as it is.
var beforeApply = map[string]bool{
	kubermaticv1.ConditionCompatible:     true,
	kubermaticv1.ConditionValuesResolved: true,
	kubermaticv1.ConditionFetched:        true,
	kubermaticv1.ConditionRendered:       true,
}

// maintain keeps what is installed as it was applied when an edit can't be followed: the pass ended before anything changed, so
// the record still says what the cluster should have. A rollback goes on, or begins for a revision that can't be applied any
// further: neither needs what the pass could not get.
func (r *Reconciler) maintain(ctx context.Context, f *facts, outcome loop.Outcome) loop.Outcome {
	condition, ok := failing(outcome)
	if !ok || !beforeApply[condition] {
		return outcome
	}
	f.decide(ctx, nil)
	switch f.Decision.Do {
	case revision.Keep:
		return earlier(outcome, loop.Run(ctx, r.maintenanceSteps(), f))
	case revision.GiveWay:
		return earlier(outcome, outcomeOf(f.GiveWay(ctx, &installer.Stop{
			Message: "it was not applied in time: " + judge(outcome).message, Recheck: installer.RefusedRecheck,
		})))
	case revision.GoBack:
		return earlier(outcome, loop.Run(ctx, r.rollbackSteps(), f))
	}
	return outcome
}

// failing is the condition that an outcome turns False.
func failing(outcome loop.Outcome) (condition string, ok bool) {
	switch o := outcome.(type) {
	case loop.RetryAt:
		return o.Condition, true
	case loop.Waiting:
		return o.Condition, true
	case loop.Stalled:
		return o.Condition, true
	}
	return "", false
}

// earlier is the outcome, to be looked at again no later than the maintenance asks for.
func earlier(outcome, kept loop.Outcome) loop.Outcome {
	recheck := loop.ComeBack(kept)
	if recheck == 0 {
		return outcome
	}
	switch o := outcome.(type) {
	case loop.Waiting:
		o.Recheck = backoff.Sooner(o.Recheck, recheck)
		return o
	case loop.Stalled:
		o.Recheck = backoff.Sooner(o.Recheck, recheck)
		return o
	}
	return outcome
}
