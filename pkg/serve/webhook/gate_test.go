package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// Whoever reaches the port without the path learns nothing, not even which paths there are. Red
// when the path isn't looked at (the condition on isRight taken out), and when an empty path opens
// the gate.
func TestGateAnswersNobodyWithoutThePath(t *testing.T) {
	path, asked := "", 0
	gate := &webhook.Gate{Path: func() string { return path }, Handlers: map[string]http.Handler{
		webhook.PathCatalogues: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }),
	}}
	ask := func(at string) (int, string) {
		answer := httptest.NewRecorder()
		gate.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, at, nil))
		return answer.Code, answer.Body.String()
	}
	_, unknown := ask("/nothing")
	for _, in := range []string{"", "secret"} {
		path = in
		for _, at := range []string{
			"/", "//", webhook.PathCatalogues, "/" + webhook.PathCatalogues, "/secre" + webhook.PathCatalogues, "/secret/", "/secret",
			"/secrets" + webhook.PathCatalogues, "/secret/x" + webhook.PathCatalogues, "/secret" + webhook.PathInstallations,
		} {
			if code, text := ask(at); code != http.StatusNotFound || text != unknown {
				t.Errorf("path %q, asked at %q: got %d %q", path, at, code, text)
			}
		}
	}
	if asked != 0 {
		t.Errorf("the handler was asked %d times", asked)
	}
	if code, _ := ask("/secret" + webhook.PathCatalogues); code != http.StatusOK || asked != 1 {
		t.Errorf("by the path: got %d, asked %d times", code, asked)
	}
}
