package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/turns"
)

const (
	// evaluatedAtOnce is how many requests about one kind are evaluated at a time: one has up to 3 MiB, and takes many
	// times that decoded.
	evaluatedAtOnce = 2
	// longestWait for a turn is shorter than the API server's timeout in the charts' values.
	longestWait = 3 * time.Second
	// longestTurn is longer than any API server waits: a request that hangs releases its turn.
	longestTurn = 30 * time.Second
)

// InTurn lets a handler read and evaluate few requests at a time. The others wait unread, and get 429 if that takes
// too long: the API server then applies the webhook's failurePolicy.
func InTurn(next http.Handler) http.Handler {
	evaluations := turns.Turns{Most: evaluatedAtOnce}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		waiting, stop := context.WithTimeout(request.Context(), longestWait)
		defer stop()
		giveBack, err := evaluations.Take(waiting, "")
		if err != nil {
			writeBusy(writer)
			return
		}
		defer giveBack()
		evaluating, end := context.WithTimeout(request.Context(), longestTurn)
		defer end()
		until, _ := evaluating.Deadline()
		_ = http.NewResponseController(writer).SetReadDeadline(until) // every server of ours supports it
		next.ServeHTTP(writer, request.WithContext(evaluating))
	})
}

// writeBusy answers as an API server would.
func writeBusy(writer http.ResponseWriter) {
	status := apierrors.NewTooManyRequestsError("the webhook is busy with too many other requests: try again").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(int(status.Code))
	_ = json.NewEncoder(writer).Encode(status) // a caller that does not read it has given up
}
