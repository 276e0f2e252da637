package fleet

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// Red when nobody hears that a rollout began, opened a group, halted or ended, or hears it again with each status.
func TestWhatIsToldOfARollout(t *testing.T) {
	status := func(revision, reason string, groups ...v1.GroupState) *v1.AddonSetStatus {
		made := &v1.AddonSetStatus{Revision: revision}
		for i, state := range groups {
			made.Groups = append(made.Groups, v1.GroupStatus{Name: []string{"canary", v1.GroupRest}[i], State: state})
		}
		ready := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "why"}
		if reason == v1.ReasonComplete {
			ready.Status = metav1.ConditionTrue
		}
		conditions.Set(&made.Conditions, ready)
		return made
	}
	t1 := toldIn(&v1.AddonSetStatus{})
	for _, step := range []struct {
		why     string
		status  *v1.AddonSetStatus
		awaited bool
		want    string
	}{
		{"nothing known", status("", v1.ReasonSeedsBehind), true, "SeedsBehind"},
		{"it begins", status("r1", v1.ReasonRollingOut, v1.GroupOpen, v1.GroupWaiting), false, "RolloutStarted GroupOpened"},
		{"nothing new", status("r1", v1.ReasonRollingOut, v1.GroupOpen, v1.GroupWaiting), false, ""},
		{"failures", status("r1", v1.ReasonHalted, v1.GroupHalted, v1.GroupWaiting), false, "Halted"},
		{"still", status("r1", v1.ReasonHalted, v1.GroupHalted, v1.GroupWaiting), false, ""},
		{"they recover", status("r1", v1.ReasonRollingOut, v1.GroupOpen, v1.GroupWaiting), false, ""},
		{"the next group", status("r1", v1.ReasonRollingOut, v1.GroupDone, v1.GroupOpen), false, "GroupOpened"},
		{"everywhere", status("r1", v1.ReasonComplete, v1.GroupDone, v1.GroupDone), false, "Completed"},
		{"still everywhere", status("r1", v1.ReasonComplete, v1.GroupDone, v1.GroupDone), false, ""},
		{"a seed is awaited", status("r1r2", v1.ReasonRollingOut, v1.GroupOpen, v1.GroupOpen), true, ""},
		{"a revision that moves nothing", status("r2", v1.ReasonComplete, v1.GroupDone, v1.GroupDone), false, "RolloutStarted Completed"},
	} {
		var reasons []string
		for _, one := range t1.update(step.status, !step.awaited) {
			reasons = append(reasons, one.reason)
			if isWarning := one.kind == "Warning"; isWarning != (one.reason == v1.ReasonHalted || one.reason == v1.ReasonSeedsBehind) {
				t.Errorf("%s: %s is of type %s", step.why, one.reason, one.kind)
			}
		}
		if got := strings.Join(reasons, " "); got != step.want {
			t.Errorf("%s: told %q, want %q", step.why, got, step.want)
		}
		again := toldIn(step.status)
		if repeated := again.update(step.status, true); len(repeated) > 0 {
			t.Errorf("%s: a new process tells %v again", step.why, repeated)
		}
	}
}
