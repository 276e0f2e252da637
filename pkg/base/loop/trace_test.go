package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/test/collector"
)

// TestAReconciliationIsTracedWithItsSteps: A reconciliation is traced with its object, its steps with their names, and its end
// as a constant: never with a message.
func TestAReconciliationIsTracedWithItsSteps(t *testing.T) {
	to, ctx, flush := collector.Traced(t)
	var outcome *loop.Outcome
	inner := []loop.Step[facts]{{Name: "inner", Run: func(context.Context, *facts) *loop.Outcome { return outcome }}}
	steps := []loop.Step[facts]{
		{Name: "first", Run: func(context.Context, *facts) *loop.Outcome { return nil }},
		{Name: "second", Run: func(ctx context.Context, f *facts) *loop.Outcome { return loop.Run(ctx, inner, f) }},
		{Name: "never", Run: func(context.Context, *facts) *loop.Outcome { return nil }},
	}
	traced := loop.Traced("test", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if loop.Run(ctx, steps, &facts{}).Is(loop.RetryAt) {
			return reconcile.Result{}, errors.New("planted")
		}
		return reconcile.Result{}, nil
	}))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "space", Name: "name"}}
	for _, outcome = range []*loop.Outcome{
		{Kind: loop.RetryAt, Condition: "Applied", Reason: "ApplyFailed", Message: "planted"},
		{Kind: loop.Waiting, Reason: "SourcePending", Message: "planted"}, {Kind: loop.Stalled, Reason: "Invalid", Message: "planted"},
		{Kind: loop.Checkpoint, Reason: "Applying", Message: "planted"}, {Kind: loop.NotMine},
	} {
		_, _ = traced.Reconcile(ctx, request)
	}
	_, _ = traced.Reconcile(t.Context(), request) // not traced
	flush()
	spans := to.Spans(t)
	var reported []string
	for _, span := range spans {
		if span.Parent == "" {
			reported = append(reported, collector.Tree(spans, span.Trace)...)
		}
	}
	const pass, first = "pass test trellis.object.namespace=space trellis.object.name=name", "  step first"
	want := []string{pass + " (failed)", first}
	ends := func(words string) {
		mark := ""
		if words == "trellis.reason=ApplyFailed trellis.outcome=RetryAt" {
			mark = " (failed)"
		}
		want = append(want, "  step second "+words+mark, "    step inner "+words+mark)
	}
	ends("trellis.reason=ApplyFailed trellis.outcome=RetryAt")
	for _, words := range []string{
		"trellis.reason=SourcePending trellis.outcome=Waiting", "trellis.reason=Invalid trellis.outcome=Stalled",
		"trellis.reason=Applying trellis.outcome=Checkpoint", "trellis.outcome=NotMine",
	} {
		want = append(want, pass, first)
		ends(words)
	}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
}
