package addoninstallation

import (
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// asGivenUp turns the outcome of an installation that was rolled back: everything may be well with what is there, and it is not what
// was asked for.
func asGivenUp(f *facts, outcome loop.Outcome) loop.Outcome {
	if f.Decision.Do != revision.GivenUp && f.Decision.Do != revision.GoBack || !f.Record().IsComplete() {
		return outcome
	}
	message := givenUpText(f.Record())
	switch o := outcome.(type) {
	case loop.Done:
	case loop.Waiting:
		if o.Condition != kubermaticv1.ConditionHealthy && o.Condition != kubermaticv1.ConditionApplied {
			return outcome
		}
		message += "; now " + o.Message
	default:
		return outcome
	}
	return loop.Stalled{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonRolledBack, Message: message, Recheck: loop.ComeBack(outcome),
	}
}

func givenUpText(record *revision.Record) string {
	return fmt.Sprintf("version %q was given up and version %q is back: choose another version, mend the values, or set annotation %s to "+
		"try once more; it failed since %s", record.Rollback.Version, record.Version, kubermaticv1.AnnotationReconcileAt, record.Rollback.Problem)
}
