package store

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// trace begins the trace of a job. It is not part of a reconciliation's trace, since many reconciliations wait for
// it.
func (s *Store) trace(ctx context.Context, entry *entry) (context.Context, *tracing.Span) {
	ctx, span := tracing.BeginTrace(ctx, tracing.Fetch, s.options.Kinds.Name(entry.reference))
	if span != nil && hostPattern.MatchString(entry.host) {
		span.Set(tracing.Host, entry.host)
	}
	return ctx, span
}

func endTrace(span *tracing.Span, err error) {
	if span == nil {
		return
	}
	result := tracing.OK
	if err != nil {
		result = reason(err)
		span.Fail()
	}
	span.Set(tracing.Result, result)
	span.End()
}
