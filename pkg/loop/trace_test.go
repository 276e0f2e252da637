package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/test/collector"
)

// A pass is told by its object, its steps by their names, and how it ended by words: never by a message.
func TestAPassIsTracedWithItsSteps(t *testing.T) {
	to, ctx, flush := collector.Traced(t)
	var outcome loop.Outcome
	inner := []loop.Step[facts]{{Name: "inner", Run: func(context.Context, *facts) loop.Outcome { return outcome }}}
	steps := []loop.Step[facts]{
		{Name: "first", Run: func(context.Context, *facts) loop.Outcome { return nil }},
		{Name: "second", Run: func(ctx context.Context, f *facts) loop.Outcome { return loop.Run(ctx, inner, f) }},
		{Name: "never", Run: func(context.Context, *facts) loop.Outcome { return nil }},
	}
	traced := loop.Traced("test", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if _, failed := loop.Run(ctx, steps, &facts{}).(loop.RetryAt); failed {
			return reconcile.Result{}, errors.New("planted")
		}
		return reconcile.Result{}, nil
	}))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "space", Name: "name"}}
	for _, outcome = range []loop.Outcome{
		loop.RetryAt{Condition: "Applied", Reason: "ApplyFailed", Message: "planted"},
		loop.Waiting{Reason: "SourcePending", Message: "planted"}, loop.Stalled{Reason: "Invalid", Message: "planted"},
		loop.Checkpoint{Reason: "Applying", Message: "planted"}, loop.NotMine{},
	} {
		_, _ = traced.Reconcile(ctx, request)
	}
	_, _ = traced.Reconcile(t.Context(), request) // not traced
	flush()
	spans := to.Spans(t)
	var told []string
	for _, span := range spans {
		if span.Parent == "" {
			told = append(told, collector.Tree(spans, span.Trace)...)
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
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
}
