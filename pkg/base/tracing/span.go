package tracing

import (
	"context"
	"strings"
	"time"
)

const (
	// mostAttributes is more than any kind of span has.
	mostAttributes = 5
	// longest is the most bytes of a text of a span.
	longest = 256
)

// Span is an operation that takes time. It is the context of operations below it. All methods can be called on nil,
// and then do nothing. Only the code that began it sets and ends it.
type Span struct {
	context.Context

	tracer *Tracer
	trace  traceID
	id     spanID
	parent spanID

	kind       Kind
	name       string
	begun      time.Time
	attributes [mostAttributes]attribute
	count      int
	failed     bool
}

// attribute has a text or, if that is empty, a number.
type attribute struct {
	key    Key
	text   string
	number int64
}

type (
	traceID [16]byte
	spanID  [8]byte
)

type spanKey struct{}

// Value implements context.Context.
func (s *Span) Value(key any) any {
	if key == (spanKey{}) {
		return s
	}
	return s.Context.Value(key)
}

func spanOf(ctx context.Context) *Span {
	found, _ := ctx.Value(spanKey{}).(*Span)
	return found
}

// IsTraced says whether Begin would begin a span, for callers that would build a name for it.
func IsTraced(ctx context.Context) bool { return spanOf(ctx) != nil }

// Under is a context with the span of another one, for work that must not end with that.
func Under(ctx, of context.Context) context.Context {
	if span := spanOf(of); span != nil {
		return context.WithValue(ctx, spanKey{}, span)
	}
	return ctx
}

// Begin begins a span below the context's. Without one, it returns the context, and nil.
func Begin(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	above := spanOf(ctx)
	if above == nil {
		return ctx, nil
	}
	made := &Span{
		Context: ctx, tracer: above.tracer, trace: above.trace, parent: above.id, id: newSpanID(),
		kind: kind, name: name, begun: time.Now(),
	}
	return made, made
}

// BeginTrace begins a trace with the context's Tracer. Without one, or if chance decides against it, it returns the
// context, and nil.
func BeginTrace(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	tracer := From(ctx)
	if tracer == nil {
		return ctx, nil
	}
	trace, isTraced := tracer.draw()
	if !isTraced {
		return ctx, nil
	}
	made := &Span{Context: ctx, tracer: tracer, trace: trace, id: newSpanID(), kind: kind, name: name, begun: time.Now()}
	return made, made
}

// Set adds an attribute, unless the text is empty.
func (s *Span) Set(key Key, text string) {
	if s != nil && text != "" {
		s.add(attribute{key: key, text: bounded(text)})
	}
}

// Number adds an attribute.
func (s *Span) Number(key Key, number int) {
	if s != nil {
		s.add(attribute{key: key, number: int64(number)})
	}
}

func (s *Span) add(one attribute) {
	if s.count < mostAttributes {
		s.attributes[s.count] = one
		s.count++
	}
}

// Fail marks the span as failed.
func (s *Span) Fail() {
	if s != nil {
		s.failed = true
	}
}

// End ends the span, once.
func (s *Span) End() {
	if s != nil {
		s.tracer.queue.add(s, time.Now())
	}
}

// bounded is a text that a collector accepts: with a text that is not UTF-8, it would refuse all spans of the
// message.
func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), longest)], "?")
}
