package fleet

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// Red when nobody hears that a rollout began, opened a group, halted or ended, or hears it again with each status.
func TestWhatIsReportedOfARollout(t *testing.T) {
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
	t1 := reportedIn(&v1.AddonSetStatus{})
	for _, step := range []struct {
		why     string
		status  *v1.AddonSetStatus
		awaited bool
		want    string
	}{
		{"nothing known", status("", v1.ReasonSeedsBehind), true, "SeedsBehind"},
		{"paused", status("r0", v1.ReasonPaused, v1.GroupOpen, v1.GroupWaiting), false, ""},
		{"and edited", status("r1", v1.ReasonPaused, v1.GroupOpen, v1.GroupWaiting), false, ""},
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
		{"all are blocked", status("r2", v1.ReasonBlocked, v1.GroupDone, v1.GroupDone), false, "Blocked"},
		{"none is selected", status("r2", v1.ReasonNoClusterSelected, v1.GroupDone, v1.GroupDone), false, "NoClusterSelected"},
		{"paused again", status("r3", v1.ReasonPaused, v1.GroupOpen, v1.GroupWaiting), false, ""},
		{"and on", status("r3", v1.ReasonRollingOut, v1.GroupOpen, v1.GroupWaiting), false, "RolloutStarted GroupOpened"},
	} {
		fleet := &rollout.Fleet{}
		if step.awaited {
			fleet.Awaited = []string{"south"}
		}
		var reasons []string
		for _, one := range t1.update(step.status, fleet) {
			reasons = append(reasons, one.reason)
			isTrouble := slices.Contains([]string{v1.ReasonHalted, v1.ReasonBlocked, v1.ReasonNoClusterSelected}, one.reason)
			if isWarning := one.kind == "Warning"; isWarning != isTrouble {
				t.Errorf("%s: %s is of type %s", step.why, one.reason, one.kind)
			}
			if one.reason == v1.EventCompleted && !strings.HasSuffix(one.message, " has no cluster left to move: why") {
				t.Errorf("%s: it says %q", step.why, one.message)
			}
		}
		if got := strings.Join(reasons, " "); got != step.want {
			t.Errorf("%s: told %q, want %q", step.why, got, step.want)
		}
		again := reportedIn(step.status)
		if repeated := again.update(step.status, fleet); len(repeated) > 0 {
			t.Errorf("%s: a new process tells %v again", step.why, repeated)
		}
	}
}

// A set is behind on seeds for a moment after each edit. Red when that is a warning, when it is none once a seed had its time, or Secrets
// are missing, and when it is told twice.
func TestSeedsThatAreBehindAreAWarningOnceThatLasts(t *testing.T) {
	behind := &v1.AddonSetStatus{}
	conditions.False(&behind.Conditions, 1, v1.ConditionReady, v1.ReasonSeedsBehind, "why")
	young, late := &rollout.Fleet{Awaited: []string{"south", "north"}}, &rollout.Fleet{Awaited: []string{"south"}, LeftOut: []string{"north"}}
	heard := &rollout.Fleet{}
	for why, test := range map[string]struct {
		fleets []*rollout.Fleet
		want   string
	}{
		"they report in time":      {[]*rollout.Fleet{young, young}, "Normal"},
		"one does not":             {[]*rollout.Fleet{young, young, late, late}, "Normal Warning"},
		"a Secret is missing":      {[]*rollout.Fleet{young, heard, heard}, "Normal Warning"},
		"it was so from the start": {[]*rollout.Fleet{late, late}, "Warning"},
	} {
		t1 := reportedIn(&v1.AddonSetStatus{})
		var kinds []string
		for _, fleet := range test.fleets {
			for _, one := range t1.update(behind, fleet) {
				kinds = append(kinds, one.kind)
			}
		}
		if got := strings.Join(kinds, " "); got != test.want {
			t.Errorf("%s: told as %q, want %q", why, got, test.want)
		}
	}
}
