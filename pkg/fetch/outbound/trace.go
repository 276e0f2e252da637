package outbound

import (
	"context"
	"net/http"
	"net/url"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// Results of requests, in traces.
const (
	resultUnreachable = "unreachable"
	resultUnexpected  = "unexpected"
)

// beginRequest begins the span of a request. It has only the host of the URL: paths may be secrets between Trellis
// and the server.
func beginRequest(ctx context.Context, method string, at *url.URL) *tracing.Span {
	_, span := tracing.Begin(ctx, tracing.Request, method)
	span.Set(tracing.Host, at.Host)
	return span
}

// endRequest ends a span with the head of the answer; nil: there is none.
func endRequest(span *tracing.Span, answer *http.Response) {
	if span == nil {
		return
	}
	if answer == nil {
		span.Set(tracing.Result, resultUnreachable)
		span.Fail()
		span.End()
		return
	}
	result := tracing.OK
	if answer.StatusCode/100 > 3 {
		result = resultUnexpected
	}
	if answer.StatusCode/100 == 5 {
		span.Fail()
	}
	span.Number(tracing.StatusCode, answer.StatusCode)
	span.Set(tracing.Result, result)
	span.End()
}

// endConnect ends the span of a connection.
func endConnect(span *tracing.Span, err error) {
	if err != nil {
		endRequest(span, nil)
		return
	}
	span.Set(tracing.Result, tracing.OK)
	span.End()
}
