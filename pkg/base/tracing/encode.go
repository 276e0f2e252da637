package tracing

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of OTLP's messages: opentelemetry.proto.collector.trace.v1 and the messages in it.
const (
	fieldResourceSpans protowire.Number = 1 // of ExportTraceServiceRequest

	fieldResource   protowire.Number = 1 // of ResourceSpans
	fieldScopeSpans protowire.Number = 2

	fieldResourceAttributes protowire.Number = 1 // of Resource

	fieldScope protowire.Number = 1 // of ScopeSpans
	fieldSpans protowire.Number = 2

	fieldScopeName    protowire.Number = 1 // of InstrumentationScope
	fieldScopeVersion protowire.Number = 2

	fieldTraceID    protowire.Number = 1 // of Span
	fieldSpanID     protowire.Number = 2
	fieldParentID   protowire.Number = 4
	fieldName       protowire.Number = 5
	fieldKind       protowire.Number = 6
	fieldBegun      protowire.Number = 7
	fieldEnded      protowire.Number = 8
	fieldAttributes protowire.Number = 9
	fieldStatus     protowire.Number = 15

	fieldCode protowire.Number = 3 // of Status

	fieldKey   protowire.Number = 1 // of KeyValue
	fieldValue protowire.Number = 2

	fieldText   protowire.Number = 1 // of AnyValue
	fieldNumber protowire.Number = 3

	fieldPartialSuccess protowire.Number = 1 // of ExportTraceServiceResponse
	fieldRejected       protowire.Number = 1 // of ExportTracePartialSuccess
)

// Kinds of spans and codes of their status in OTLP.
const (
	kindInternal = 1
	kindClient   = 3
	codeError    = 2
)

// scope is the name of the instrumentation.
const scope = "trellis"

func appendBytes(to []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), value)
}

func appendText(to []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), value)
}

func appendVarint(to []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), value)
}

func appendTime(to []byte, field protowire.Number, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(to, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

// appendSpan appends a Span that ended.
func appendSpan(to []byte, span *Span, ended time.Time) []byte {
	to = appendBytes(to, fieldTraceID, span.trace[:])
	to = appendBytes(to, fieldSpanID, span.id[:])
	if span.parent != (spanID{}) {
		to = appendBytes(to, fieldParentID, span.parent[:])
	}
	to = protowire.AppendTag(to, fieldName, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(len(span.kind)+1+len(span.name)))
	to = append(append(append(to, span.kind...), ' '), span.name...)
	kind := uint64(kindInternal)
	if span.kind == Call || span.kind == Request {
		kind = kindClient
	}
	to = appendVarint(to, fieldKind, kind)
	to = appendTime(to, fieldBegun, span.begun)
	to = appendTime(to, fieldEnded, span.begun.Add(ended.Sub(span.begun))) // setting the clock makes no span end early
	for _, attribute := range span.attributes[:span.count] {
		to = appendAttribute(to, fieldAttributes, attribute)
	}
	if span.failed {
		to = protowire.AppendTag(to, fieldStatus, protowire.BytesType)
		to = protowire.AppendVarint(to, uint64(protowire.SizeTag(fieldCode)+1))
		to = appendVarint(to, fieldCode, codeError)
	}
	return to
}

// appendAttribute appends a KeyValue as a field of its owner.
func appendAttribute(to []byte, field protowire.Number, one attribute) []byte {
	value := protowire.SizeTag(fieldText) + protowire.SizeBytes(len(one.text))
	if one.text == "" {
		value = protowire.SizeTag(fieldNumber) + protowire.SizeVarint(uint64(one.number))
	}
	key := protowire.SizeTag(fieldKey) + protowire.SizeBytes(len(one.key))
	to = protowire.AppendTag(to, field, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(key+protowire.SizeTag(fieldValue)+protowire.SizeBytes(value)))
	to = appendText(to, fieldKey, string(one.key))
	to = protowire.AppendTag(to, fieldValue, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(value))
	if one.text == "" {
		return appendVarint(to, fieldNumber, uint64(one.number))
	}
	return appendText(to, fieldText, one.text)
}

// head has the fields before the spans of each message.
type head struct{ resource, scope []byte }

// newHead encodes the attributes of the process that are not empty, and the program's version.
func newHead(resource map[string]string, version string) head {
	var attributes []byte
	for _, key := range slices.Sorted(maps.Keys(resource)) {
		if resource[key] != "" {
			attributes = appendAttribute(attributes, fieldResourceAttributes, attribute{key: Key(key), text: bounded(resource[key])})
		}
	}
	who := appendText(nil, fieldScopeName, scope)
	who = appendText(who, fieldScopeVersion, version)
	return head{resource: appendBytes(nil, fieldResource, attributes), scope: appendBytes(nil, fieldScope, who)}
}

// message is an ExportTraceServiceRequest with encoded spans.
func (h head) message(spans []byte) []byte {
	inner := len(h.scope) + len(spans)
	outer := len(h.resource) + protowire.SizeTag(fieldScopeSpans) + protowire.SizeBytes(inner)
	to := make([]byte, 0, protowire.SizeTag(fieldResourceSpans)+protowire.SizeBytes(outer))
	to = protowire.AppendTag(to, fieldResourceSpans, protowire.BytesType)
	to = append(protowire.AppendVarint(to, uint64(outer)), h.resource...)
	to = protowire.AppendTag(to, fieldScopeSpans, protowire.BytesType)
	to = append(protowire.AppendVarint(to, uint64(inner)), h.scope...)
	return append(to, spans...)
}

// rejected is how many spans an ExportTraceServiceResponse reports as refused. An unreadable one counts as none.
func rejected(answer []byte) int64 {
	partial, _ := field(answer, fieldPartialSuccess)
	_, count := field(partial, fieldRejected)
	return max(0, count)
}

// field finds a field in a message: its bytes, or its number.
func field(message []byte, wanted protowire.Number) (inner []byte, number int64) {
	for len(message) > 0 {
		found, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, 0
		}
		message = message[size:]
		whole := protowire.ConsumeFieldValue(found, kind, message)
		if whole < 0 {
			return nil, 0
		}
		if found == wanted && kind == protowire.BytesType {
			inner, _ = protowire.ConsumeBytes(message)
			return inner, 0
		}
		if found == wanted && kind == protowire.VarintType {
			value, _ := protowire.ConsumeVarint(message)
			return nil, int64(value)
		}
		message = message[whole:]
	}
	return nil, 0
}
