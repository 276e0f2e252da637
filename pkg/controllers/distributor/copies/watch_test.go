package copies

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// An API server that is shut down ends its watches in order. Red when the next one goes on where that ended: a seed that was restored
// meanwhile would be taken for what it was.
func TestAWatchThatEndsBeforeItsTimeIsBroken(t *testing.T) {
	watches := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		watches++
		answer.Header().Set("Content-Type", "application/json")
		_, _ = answer.Write([]byte(`{"type":"MODIFIED","object":{"metadata":{"name":"tools","resourceVersion":"7"}}}` + "\n"))
	}))
	defer server.Close()
	client, err := remote.New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		remote.Options{Budget: remote.NewBudget(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	keeper := NewKeeper(nil, "south", "catalogues")
	woken := 0
	err = keeper.Follow(client, func() { woken++ })(t.Context())
	if _, ended := errors.AsType[*EndedError](err); !ended || watches != 1 || woken != 1 {
		t.Errorf("%v after %d watches and %d changes", err, watches, woken)
	}
}
