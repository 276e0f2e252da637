package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestRequestsAreCountedByVerbAndResult: red when a request is not counted, or by another verb or result than it has.
func TestRequestsAreCountedByVerbAndResult(t *testing.T) {
	codes := map[string]int{"/fine": 200, "/gone": 404, "/taken": 409, "/denied": 403, "/unknown": 401, "/busy": 429, "/wrong": 422, "/odd": 799, "/broken": 503}
	client := clientOf(t, Options{}, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/dead" {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(codes[request.URL.Path])
	})
	for _, test := range []struct{ method, path, kind, verb, result string }{
		{http.MethodGet, "/fine", "", "get", resultOK},
		{http.MethodGet, "/fine?watch=1", "", "watch", ""}, // is not asked
		{http.MethodPost, "/taken", "", "create", resultConflict},
		{http.MethodPut, "/gone", "", "update", resultNotFound},
		{http.MethodDelete, "/denied", "", "delete", resultDenied},
		{http.MethodPatch, "/busy", "application/apply-patch+yaml", "apply", resultThrottled},
		{http.MethodPatch, "/wrong", "application/merge-patch+json", "patch", resultRefused},
		{http.MethodGet, "/unknown", "", "get", resultDenied},
		{http.MethodGet, "/odd", "", "get", resultFailed},
		{http.MethodGet, "/broken", "", "get", resultFailed},
		{http.MethodPut, "/dead", "", "update", resultUnreachable},
		{http.MethodOptions, "/fine", "", "other", resultOK},
	} {
		before := counted(t)
		request, err := http.NewRequestWithContext(t.Context(), test.method, client.Config.Host+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", test.kind)
		if response, err := client.HTTP.Do(request); err == nil {
			_ = response.Body.Close()
		}
		for key, after := range counted(t) {
			if want := key == test.verb+" "+test.result; (after != before[key]) != want || want && after != before[key]+1 {
				t.Errorf("%s %s: %q is counted from %g to %g", test.method, test.path, key, before[key], after)
			}
		}
		if counted(t)[test.verb+" "+test.result] == 0 && test.result != "" {
			t.Errorf("%s %s is not counted as %s %s", test.method, test.path, test.verb, test.result)
		}
	}
}

// counted are the requests by verb and result.
func counted(t *testing.T) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for metric := range gathered(t) {
		var labels []string
		for _, label := range metric.GetLabel() {
			labels = append([]string{label.GetValue()}, labels...) // by name: result, verb
		}
		found[strings.Join(labels, " ")] = metric.GetCounter().GetValue()
	}
	return found
}

func gathered(t *testing.T) map[*dto.Metric]bool {
	t.Helper()
	found := map[*dto.Metric]bool{}
	series := make(chan prometheus.Metric, 100)
	requests.Collect(series)
	close(series)
	for one := range series {
		var metric dto.Metric
		if err := one.Write(&metric); err != nil {
			t.Fatal(err)
		}
		found[&metric] = true
	}
	return found
}
