package tracing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

// OpenTelemetry's own types read what a message has, and nothing else is in it.
func TestAMessageIsOTLP(t *testing.T) {
	begun := time.Unix(1700000000, 123456789)
	nanoseconds := uint64(begun.UnixNano())
	long := strings.Repeat("n", 200) // a length of two bytes
	root := &Span{
		trace: traceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, id: spanID{1, 1, 1, 1, 1, 1, 1, 1},
		kind: Reconcile, name: "addoninstallation", begun: begun,
	}
	root.Set(ObjectNamespace, "cluster-x")
	root.Set(ObjectName, long)
	call := &Span{
		trace: root.trace, id: spanID{2, 2, 2, 2, 2, 2, 2, 2}, parent: root.id,
		kind: Call, name: "apply deployments.apps", begun: begun.Add(time.Millisecond),
	}
	call.Set(Server, "remote")
	call.Number(StatusCode, 503)
	call.Number(Reason, 0)
	call.Fail()
	queue := newQueue(nil)
	queue.add(call, begun.Add(2*time.Millisecond))
	queue.add(root, begun.Add(3*time.Millisecond))
	whole, _ := queue.next()
	resource := map[string]string{"service.name": "trellis-seed", "service.version": "1.2.3", "deployment.environment": ""}
	var got tracepb.TracesData
	if err := proto.Unmarshal(newHead(resource, "1.2.3").message(whole.bytes), &got); err != nil {
		t.Fatal(err)
	}
	want := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "trellis-seed"), text("service.version", "1.2.3")}},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "trellis", Version: "1.2.3"},
			Spans: []*tracepb.Span{
				{
					TraceId: root.trace[:], SpanId: call.id[:], ParentSpanId: root.id[:],
					Name: "call apply deployments.apps", Kind: tracepb.Span_SPAN_KIND_CLIENT,
					StartTimeUnixNano: nanoseconds + 1e6, EndTimeUnixNano: nanoseconds + 2e6,
					Attributes: []*commonpb.KeyValue{
						text("trellis.server", "remote"), number("http.response.status_code", 503), number("trellis.reason", 0),
					},
					Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR},
				},
				{
					TraceId: root.trace[:], SpanId: root.id[:], Name: "pass addoninstallation", Kind: tracepb.Span_SPAN_KIND_INTERNAL,
					StartTimeUnixNano: nanoseconds, EndTimeUnixNano: nanoseconds + 3e6,
					Attributes: []*commonpb.KeyValue{text("trellis.object.namespace", "cluster-x"), text("trellis.object.name", long)},
				},
			},
		}},
	}}}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}
