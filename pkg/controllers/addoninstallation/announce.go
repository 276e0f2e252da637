package addoninstallation

import (
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// quicklyApplied is how many objects are written in so little time that their rollout need not be announced.
const quicklyApplied = 30

// announceRollout has the status show a long rollout before it begins, once for each edit: else nothing is told of the edit until
// the rollout waits for something or is through. Left is how many objects are to be written.
func announceRollout(f *facts, left int) loop.Outcome {
	generation := f.installation.Generation
	isTold := f.memory.told == generation || f.installation.Status.ObservedGeneration == generation
	if isTold || left <= quicklyApplied {
		return nil
	}
	f.memory.told = generation // also where the status can't be written
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonProgressing, Recheck: atOnce,
		Message: fmt.Sprintf("%d of %d objects are about to be written", left, len(f.objects)),
	}
}
