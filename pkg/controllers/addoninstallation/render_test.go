package addoninstallation

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
)

// AC01, AC02: A rendering beyond its limits, or whose process died, is reported and retried later.
func TestRenderOutcome(t *testing.T) {
	soon := time.Now().Add(5 * time.Minute)
	for _, test := range []struct {
		why    string
		err    error
		reason string
		// later: the next reconciliation is scheduled.
		stalled, later bool
	}{
		{"it takes long", render.ErrPending, kubermaticv1.ReasonRendering, false, true},
		{"a bomb", &render.PutOffError{Err: &render.ExhaustedError{Addon: "a", Limit: "memory"}, Until: soon}, kubermaticv1.ReasonLimitExceeded, true, true},
		{"a renderer died", &render.PutOffError{Err: &render.DiedError{Addon: "a"}, Until: soon}, kubermaticv1.ReasonLimitExceeded, true, true},
		{"a wrong template", &render.TemplateError{File: "a", Problem: "b"}, kubermaticv1.ReasonRenderFailed, true, false},
		{"too much comes out", &render.LimitError{What: "objects", Max: 1}, kubermaticv1.ReasonLimitExceeded, true, false},
		{"nothing comes out", &render.NoManifestsError{Addon: "a"}, kubermaticv1.ReasonNoManifests, true, false},
		{"the machine's trouble", errors.New("no process"), kubermaticv1.ReasonRenderFailed, false, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			outcome := renderOutcome(&rendering.Error{Cause: rendering.CauseKeeper, Err: test.err})
			if outcome.Condition != kubermaticv1.ConditionRendered || outcome.Reason != test.reason || outcome.Is(loop.Stalled) != test.stalled {
				t.Errorf("got %#v", outcome)
			}
			if wait := loop.RequeueAfter(outcome); wait > 0 != test.later || test.stalled && test.later && wait < 4*time.Minute {
				t.Errorf("comes back after %s", wait)
			}
		})
	}
}

func configMap(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "n"},
		"data": map[string]any{"text": text},
	}}
}

// TestIntentIsNotRenderedAgain: the intent that a crash left is continued unchanged.
func TestIntentIsNotRenderedAgain(t *testing.T) {
	encoded, err := json.Marshal(configMap("a", "made up").Object)
	if err != nil {
		t.Fatal(err)
	}
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	f.inputs.Hash, f.run.State.Record = "1", &revision.Record{State: revision.StateIntent, Inputs: "1", Objects: []json.RawMessage{encoded}}
	isTaken := func() bool {
		wanted := &revision.Wanted{Inputs: f.inputs.Hash}
		return revision.Decide(f.run.Record(), wanted, revision.Observed{}).FromRecord
	}
	if !isTaken() {
		t.Fatal("the intent is not taken up")
	}
	if outcome := f.run.ReadIntent(); outcome != nil {
		t.Fatal(outcome)
	}
	if diff := cmp.Diff([]*unstructured.Unstructured{configMap("a", "made up")}, f.run.Objects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for why, change := range map[string]func(){
		"other inputs": func() { f.inputs.Hash = "2" }, "it is applied": func() { f.inputs.Hash, f.run.State.Record.State = "1", revision.StateApplied },
	} {
		if change(); isTaken() {
			t.Errorf("%s: the intent is taken up", why)
		}
	}
}

// TestReconcileAtRendersOnceMore: once for each value of the annotation, even if reconciliations follow each other
// before the comparison that it requests.
func TestReconcileAtRendersOnceMore(t *testing.T) {
	known := &memory{}
	for _, pass := range []struct {
		value string
		want  bool
	}{{"", false}, {"now", true}, {"now", false}, {"later", true}, {"later", false}} {
		if got := known.rendersAgain(pass.value); got != pass.want {
			t.Errorf("%q: renders anew %t, want %t", pass.value, got, pass.want)
		}
	}
}

// TestNonDeterministicIsReportedOnce: the warning names the objects, once for the same inputs.
func TestNonDeterministicIsReportedOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := New(Dependencies{Recorder: recorder})
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	f.inputs.Hash = "1"
	r.warnOfChanges(f, nil)
	r.warnOfChanges(f, []string{"Secret n/certificate", "b", "c", "d", "e", "f", "g"})
	r.warnOfChanges(f, []string{"Secret n/certificate"})
	f.inputs.Hash = "2"
	r.warnOfChanges(f, []string{"Secret n/other"})
	if len(recorder.Events) != 2 {
		t.Fatalf("%d warnings, want one for each inputs", len(recorder.Events))
	}
	first := <-recorder.Events
	for _, part := range []string{"Warning NonDeterministic", "Secret n/certificate, b, c, d, e and 2 more"} {
		if !strings.Contains(first, part) {
			t.Errorf("the warning %q lacks %q", first, part)
		}
	}
}
