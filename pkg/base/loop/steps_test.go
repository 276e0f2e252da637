package loop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func TestRunEndsAtTheFirstOutcome(t *testing.T) {
	var trail []string
	step := func(name string, outcome *loop.Outcome) loop.Step[[]string] {
		return loop.Step[[]string]{Name: name, Run: func(_ context.Context, facts *[]string) *loop.Outcome {
			*facts = append(*facts, name)
			return outcome
		}}
	}
	waiting := &loop.Outcome{Kind: loop.Waiting, Condition: "Applied", Reason: "WaitingForStage", Recheck: time.Second}
	steps := []loop.Step[[]string]{step("first", nil), step("second", waiting), step("third", nil)}

	outcome := loop.Run(t.Context(), steps, &trail)

	if diff := cmp.Diff(waiting, outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "second"}, trail); diff != "" {
		t.Errorf("steps taken (-want +got):\n%s", diff)
	}
}

func TestRunPastTheLastStepIsDone(t *testing.T) {
	facts := 0
	steps := []loop.Step[int]{{Name: "only", Run: func(context.Context, *int) *loop.Outcome { return nil }}}
	if outcome := loop.Run(t.Context(), steps, &facts); *outcome != (loop.Outcome{Kind: loop.Done}) {
		t.Errorf("outcome %v, want Done", outcome)
	}
}

type facts struct{}

// TestStepsAreNamedInLogsAndMetrics fails when a line of the log does not name the step that wrote it, or when the
// time of a step is not measured under its controller, which is the package of its facts, and its name.
func TestStepsAreNamedInLogsAndMetrics(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	steps := []loop.Step[facts]{
		{Name: "measured-once", Run: func(ctx context.Context, _ *facts) *loop.Outcome {
			log.FromContext(ctx).Info("something happened")
			return nil
		}},
		{Name: "measured-last", Run: func(context.Context, *facts) *loop.Outcome { return &loop.Outcome{Kind: loop.NotMine} }},
	}
	loop.Run(log.IntoContext(t.Context(), logger), steps, &facts{})
	if len(lines) != 1 || !strings.Contains(lines[0], `"step"="measured-once"`) {
		t.Errorf("the log says %q", lines)
	}
	for _, name := range []string{"measured-once", "measured-last"} {
		if count := measured(t, "loop_test", name); count != 1 {
			t.Errorf("step %q: %d times are measured, want 1", name, count)
		}
	}
}

// measured is the number of observations of a step in metric trellis_step_seconds.
func measured(t *testing.T, controller, step string) uint64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == "trellis_step_seconds" && labels["controller"] == controller && labels["step"] == step {
				return metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return 0
}
