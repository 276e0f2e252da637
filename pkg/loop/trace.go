package loop

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/tracing"
)

// Traced traces the passes of a reconciler, under the name of its controller. Register does it too.
func Traced(name string, passes reconcile.Reconciler) reconcile.Reconciler {
	return &traced{passes, name}
}

type traced struct {
	passes reconcile.Reconciler
	name   string
}

// Reconcile implements reconcile.Reconciler.
func (t *traced) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, span := BeginPass(ctx, t.name, request.Namespace, request.Name)
	defer span.End()
	result, err := t.passes.Reconcile(ctx, request)
	if err != nil {
		span.Fail()
	}
	return result, err
}

// BeginPass begins the trace of a pass over an object, for what is no reconciler.
func BeginPass(ctx context.Context, name, namespace, object string) (context.Context, *tracing.Span) {
	ctx, span := tracing.BeginTrace(ctx, tracing.Pass, name)
	span.Set(tracing.ObjectNamespace, namespace)
	span.Set(tracing.ObjectName, object)
	return ctx, span
}

// endSpan ends the span of a step; nil: the pass goes on. An outcome's message may quote what
// somebody wrote, so it is not told.
func endSpan(span *tracing.Span, outcome Outcome) {
	if span == nil {
		return
	}
	switch o := outcome.(type) {
	case RetryAt:
		span.Set(tracing.Reason, o.Reason)
		span.Fail()
	case Waiting:
		span.Set(tracing.Reason, o.Reason)
	case Stalled:
		span.Set(tracing.Reason, o.Reason)
	case Checkpoint:
		span.Set(tracing.Reason, o.Reason)
	}
	if outcome != nil {
		span.Set(tracing.Outcome, reflect.TypeOf(outcome).Name())
	}
	span.End()
}
