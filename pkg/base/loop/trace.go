package loop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// Traced traces the reconciliations of a reconciler, under the name of its controller. Register does it too.
func Traced(name string, reconciler reconcile.Reconciler) reconcile.Reconciler {
	return &traced{reconciler, name}
}

type traced struct {
	reconciler reconcile.Reconciler
	name       string
}

// Reconcile implements reconcile.Reconciler.
func (t *traced) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, span := BeginReconcile(ctx, t.name, request.Namespace, request.Name)
	defer span.End()
	result, err := t.reconciler.Reconcile(ctx, request)
	if err != nil {
		span.Fail()
	}
	return result, err
}

// BeginReconcile begins the trace of a reconciliation of an object, for code that is no reconciler.
func BeginReconcile(ctx context.Context, name, namespace, object string) (context.Context, *tracing.Span) {
	ctx, span := tracing.BeginTrace(ctx, tracing.Reconcile, name)
	span.Set(tracing.ObjectNamespace, namespace)
	span.Set(tracing.ObjectName, object)
	return ctx, span
}

// endSpan ends the span of a step; nil: the reconciliation continues. The span does not have the outcome's message,
// which may quote text of users.
func endSpan(span *tracing.Span, outcome *Outcome) {
	if span == nil {
		return
	}
	if outcome != nil {
		span.Set(tracing.Reason, outcome.Reason)
		if outcome.Is(RetryAt) {
			span.Fail()
		}
		span.Set(tracing.Outcome, string(outcome.Kind))
	}
	span.End()
}
