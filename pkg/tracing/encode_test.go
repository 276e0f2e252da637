package tracing

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/golden"
)

// The bytes of a message are those that OpenTelemetry's own types read without an unknown field: message.hex was held against
// go.opentelemetry.io/proto/otlp v1.11.0 when it was written, and OTLP's fields never change. Do so again before you update it.
func TestAMessageIsOTLP(t *testing.T) {
	begun := time.Unix(1700000000, 123456789)
	root := &Span{
		trace: traceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, id: spanID{1, 1, 1, 1, 1, 1, 1, 1},
		kind: Pass, name: "addoninstallation", begun: begun,
	}
	root.Set(ObjectNamespace, "cluster-x")
	root.Set(ObjectName, strings.Repeat("n", 200)) // a length of two bytes
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
	message := newHead(map[string]string{"service.name": "trellis-seed", "service.version": "1.2.3"}, "1.2.3").message(whole.bytes)
	golden.Match(t, "testdata/message.hex", hex.EncodeToString(message)+"\n")
}
