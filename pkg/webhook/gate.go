package webhook

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// Gate lets requests through to handlers that came by a path which only the API server was told. Whoever reaches the port
// otherwise learns nothing: every other request has the same answer, 404.
type Gate struct {
	// Path gives the path that is in force, without slashes; empty: there is none yet, and nobody gets through.
	Path func() string
	// Handlers by what follows the path.
	Handlers map[string]http.Handler
}

// ServeHTTP implements http.Handler.
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
