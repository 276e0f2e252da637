// Package tracing tells what passes do, step by step and call by call, to a collector of
// OpenTelemetry.
//
// A Tracer travels in the context of a manager's runnables. BeginTrace begins a trace by it, such
// as one of a pass, or none: by chance, or where there is no Tracer. Begin begins a span below that
// of its context, and nothing where there is none. A Span that is nil does nothing, so callers ask
// nothing, and without a Tracer nothing is allocated.
//
// What a span says is a closed set: kinds and attributes stand in names.go, and a law holds
// docs/spec/traces.md against them. Their values are words of our code, names of objects of ours,
// kinds, hosts and numbers. No text of an answer, an error, a manifest or a Secret comes here, and no URL.
//
// A Span is encoded when it ends (encode.go), into a queue with an end (queue.go): what finds no
// place is dropped and counted. One goroutine sends the queue (export.go). A collector that is
// down, slow or hostile costs that goroutine's time, and spans: its answer is not read past a
// few kibibytes, never repeated, and waited for within limits. The end of a manager waits two seconds.
//
// The protocol is OTLP over HTTP with protobuf, which takes a hundred lines. The SDK would link
// gRPC: ADR 86.
package tracing
