// Package tracing sends traces of reconciliations, step by step and call by call, to an OpenTelemetry collector.
//
// The context of a manager's runnables carries a Tracer. BeginTrace begins a trace with it, such as one of a
// reconciliation; by chance, or without a Tracer, it begins none. Begin begins a span below the context's span, and
// none if there is none. A nil Span does nothing, so callers need no check, and without a Tracer nothing is
// allocated.
//
// The content of a span is a closed set: kinds and attributes are listed in names.go, and a test compares
// docs/spec/traces.md with them. Their values are words of our code, names of objects of ours, kinds, hosts and
// numbers. They never have text of an answer, an error, a manifest or a Secret, and no URL.
//
// A Span is encoded when it ends (encode.go), into a bounded queue (queue.go): spans that find no place are dropped
// and counted. One goroutine sends the queue (export.go). A collector that is down, slow or hostile costs that
// goroutine's time, and spans: its answer is read up to a few kibibytes, never repeated, and awaited within limits.
// The end of a manager waits two seconds.
//
// The protocol is OTLP over HTTP with protobuf, which takes a hundred lines. The SDK would link gRPC (ADR 86, 133).
package tracing
