package collector

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
)

// Span is a span that the collector read.
type Span struct {
	Trace, ID, Parent, Name string
	Kind                    tracepb.Span_SpanKind
	Begun, Ended            time.Time
	// Attributes are key=value, in their order; Resource are those of the process.
	Attributes, Resource []string
	Failed               bool
}

var errFields = errors.New("the message has fields that OpenTelemetry's types do not have")

// Read reads an ExportTraceServiceRequest with OpenTelemetry's own types. It fails if they do not have all of its fields.
func Read(message []byte) (spans []Span, err error) {
	var read tracepb.TracesData // has the fields of the request, whose type would bring gRPC
	if err := proto.Unmarshal(message, &read); err != nil {
		return nil, fmt.Errorf("reading a message with traces: %w", err)
	}
	err = protorange.Range(read.ProtoReflect(), func(at protopath.Values) error {
		if at.Index(-1).Step.Kind() == protopath.UnknownAccessStep {
			return errFields
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, of := range read.GetResourceSpans() {
		for _, in := range of.GetScopeSpans() {
			for _, one := range in.GetSpans() {
				spans = append(spans, spanOf(one, texts(of.GetResource().GetAttributes())))
			}
		}
	}
	return spans, nil
}

func spanOf(read *tracepb.Span, resource []string) Span {
	return Span{
		Trace: hex.EncodeToString(read.GetTraceId()), ID: hex.EncodeToString(read.GetSpanId()),
		Parent: hex.EncodeToString(read.GetParentSpanId()), Name: read.GetName(), Kind: read.GetKind(),
		Begun: time.Unix(0, int64(read.GetStartTimeUnixNano())), Ended: time.Unix(0, int64(read.GetEndTimeUnixNano())),
		Attributes: texts(read.GetAttributes()), Resource: resource,
		Failed: read.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
	}
}

func texts(attributes []*commonpb.KeyValue) []string {
	var all []string
	for _, one := range attributes {
		text := one.GetValue().GetStringValue()
		if number, isNumber := one.GetValue().GetValue().(*commonpb.AnyValue_IntValue); isNumber {
			text = fmt.Sprint(number.IntValue)
		}
		all = append(all, one.GetKey()+"="+text)
	}
	return all
}

// Value is that of an attribute; "": there is none.
func (s Span) Value(key string) string {
	for _, attribute := range s.Attributes {
		if value, found := strings.CutPrefix(attribute, key+"="); found {
			return value
		}
	}
	return ""
}

// Tree tells the spans of one trace, the earlier first, a line for each, below their parents. Those that are alike and follow one
// another are one line; calls of one verb that do are told by name, since they are made at a time.
func Tree(spans []Span, trace string) []string {
	spans = slices.DeleteFunc(slices.Clone(spans), func(span Span) bool { return span.Trace != trace })
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Begun.Compare(b.Begun) })
	for at := 1; at < len(spans); at++ {
		for i := at; i > 0 && isBefore(spans[i], spans[i-1]); i-- {
			spans[i], spans[i-1] = spans[i-1], spans[i]
		}
	}
	return below(spans, "", "")
}

// isBefore says whether a call is told before the one that was made before it.
func isBefore(later, earlier Span) bool {
	verb := strings.LastIndex(later.Name, " ") + 1
	return strings.HasPrefix(later.Name, "call ") && later.Parent == earlier.Parent && later.Name < earlier.Name &&
		strings.HasPrefix(earlier.Name, later.Name[:verb])
}

func below(spans []Span, parent, indent string) (lines []string) {
	last := ""
	for _, span := range spans {
		if span.Parent != parent {
			continue
		}
		line := indent + strings.Join(append([]string{span.Name}, span.Attributes...), " ")
		if span.Failed {
			line += " (failed)"
		}
		deeper := below(spans, span.ID, indent+"  ")
		if line == last && len(deeper) == 0 {
			continue
		}
		last = line
		lines = append(append(lines, line), deeper...)
	}
	return lines
}
