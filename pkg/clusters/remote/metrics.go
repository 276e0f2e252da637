package remote

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// requests counts those to all API servers that others control together: a single server has no series of its own.
var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "trellis_remote_requests_total",
	Help: "Requests to API servers of user clusters and seeds, by verb and by the result in the head of the answer.",
}, []string{"verb", "result"})

func init() { metrics.Registry.MustRegister(requests) }

// Results of a request, as labels.
const (
	resultOK          = "ok"
	resultNotFound    = "notFound"
	resultConflict    = "conflict"
	resultDenied      = "denied"
	resultThrottled   = "throttled"
	resultRefused     = "refused"
	resultFailed      = "failed"
	resultUnreachable = "unreachable"
)

// count counts a request by its answer, which is nil if there was none.
func count(request *http.Request, response *http.Response) {
	requests.WithLabelValues(verbOf(request), resultOf(response)).Inc()
}

const (
	verbGet = "get"
	// verbList is for traces only, which know what a path names.
	verbList = "list"
)

// verbOf returns a request's verb, as the API server's own metrics name it. A list is a get here.
func verbOf(request *http.Request) string {
	switch request.Method {
	case http.MethodGet:
		if isStream(request) {
			return "watch"
		}
		return verbGet
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	}
	return "other"
}

func resultOf(response *http.Response) string {
	if response == nil {
		return resultUnreachable
	}
	switch code := response.StatusCode; {
	case code/100 == 2:
		return resultOK
	case code == http.StatusNotFound:
		return resultNotFound
	case code == http.StatusConflict:
		return resultConflict
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return resultDenied
	case code == http.StatusTooManyRequests:
		return resultThrottled
	case code/100 == 4:
		return resultRefused
	}
	return resultFailed
}
