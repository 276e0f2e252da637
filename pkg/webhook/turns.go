package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/turns"
)

const (
	// judgedAtOnce is how many requests about one kind are read and judged at a time: one has up to 3 MiB, and takes many times that decoded.
	judgedAtOnce = 2
	// longestWait for a turn is less than the API server waits by the charts' values.
	longestWait = 3 * time.Second
	// longestTurn is more than any API server waits: what hangs gives its turn back.
	longestTurn = 30 * time.Second
)

// InTurn lets a handler read and judge few requests at a time. The others wait unread, and get 429 if that takes too long: the API server
// does then what the webhook's failurePolicy says.
func InTurn(next http.Handler) http.Handler {
	judged := turns.Turns{Most: judgedAtOnce}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		waiting, stop := context.WithTimeout(request.Context(), longestWait)
		defer stop()
		giveBack, err := judged.Take(waiting, "")
		if err != nil {
			writeBusy(writer)
			return
		}
		defer giveBack()
		judging, end := context.WithTimeout(request.Context(), longestTurn)
		defer end()
		until, _ := judging.Deadline()
		_ = http.NewResponseController(writer).SetReadDeadline(until) // every server of ours can
		next.ServeHTTP(writer, request.WithContext(judging))
	})
}

// writeBusy answers as an API server would.
func writeBusy(writer http.ResponseWriter) {
	status := apierrors.NewTooManyRequestsError("the webhook judges too many other requests at present: try again").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(int(status.Code))
	_ = json.NewEncoder(writer).Encode(status) // who does not read it has given up
}
