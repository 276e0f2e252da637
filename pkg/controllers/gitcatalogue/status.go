package gitcatalogue

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// project writes condition Fetched, revision and counts. The rest is the distributor's.
func project(f *facts, outcome *loop.Outcome) {
	s, generation := &f.object.Status, f.object.Generation
	if f.object.Spec.Git == nil {
		meta.RemoveStatusCondition(&s.Conditions, v1.ConditionFetched)
		s.Revision = ""
		return
	}
	if f.isCurrent {
		s.Revision, s.Addons, s.Versions = f.snapshot.Revision, int32(len(f.memory.children)), f.memory.versions // at most 512
	}
	switch outcome.Kind {
	case loop.Done:
		conditions.True(&s.Conditions, generation, v1.ConditionFetched, v1.ReasonFetched,
			fmt.Sprintf("%s from commit %s", text.Count(int(s.Addons), "add-on"), s.Revision))
	case loop.Waiting:
		present := meta.FindStatusCondition(s.Conditions, v1.ConditionFetched)
		switch {
		case outcome.Reason != v1.ReasonFetching:
			conditions.False(&s.Conditions, generation, outcome.Condition, outcome.Reason, outcome.Message)
		case present == nil: // the condition does not change while known content is read again
			conditions.Unknown(&s.Conditions, generation, outcome.Condition, outcome.Reason, outcome.Message)
		}
	case loop.RetryAt:
		conditions.False(&s.Conditions, generation, outcome.Condition, outcome.Reason, outcome.Message)
	}
}

// announce reports a commit that changed something, once, also if the cache is behind.
func (r *Reconciler) announce(f *facts, before string) {
	if !f.isCurrent || len(f.plan.write)+len(f.plan.remove) == 0 || before == f.snapshot.Revision ||
		f.memory.announced == f.snapshot.Revision {
		return
	}
	f.memory.announced = f.snapshot.Revision
	r.recorder.Eventf(f.object, nil, corev1.EventTypeNormal, v1.EventFetched, "Take",
		"applied commit %s: %s added, %d changed, %d removed",
		f.snapshot.Revision, text.Count(f.plan.added, "add-on"), len(f.plan.write)-f.plan.added, len(f.plan.remove))
}

// apiReason describes an API server's refusal, for status.
func apiReason(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return "the API server does not answer"
	}
	said := answer.Status()
	if said.Details == nil || len(said.Details.Causes) == 0 {
		return fmt.Sprintf("%s: %s", said.Reason, said.Message)
	}
	cause := said.Details.Causes[0]
	text := fmt.Sprintf("%s: %s", cause.Field, cause.Message)
	if more := len(said.Details.Causes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
