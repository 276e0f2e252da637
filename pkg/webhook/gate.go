package webhook

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// Gate passes requests on to handlers if they have the path that only the API server knows. All
// others get 404.
type Gate struct {
	// Path returns the current path, without slashes; empty: none yet, and all requests get 404.
	Path func() string
	// Handlers by what follows the path.
	Handlers map[string]http.Handler
}

func (g *Gate) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	given, rest, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	want := g.Path()
	isRight := subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1 && want != ""
	if handler, known := g.Handlers["/"+rest]; isRight && known {
		handler.ServeHTTP(writer, request)
		return
	}
	http.NotFound(writer, request)
}
