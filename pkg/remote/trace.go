package remote

import (
	"context"
	"net/http"
	"strings"

	"github.com/trellis-addons/trellis/pkg/tracing"
)

// Whose API server a span is about.
const (
	serverOwn    = "own"
	serverRemote = "remote"
)

// Traced traces the calls of passes to the manager's own API server, which is not behind a Client.
func Traced(next http.RoundTripper) http.RoundTripper { return &ownCalls{next} }

type ownCalls struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o *ownCalls) RoundTrip(request *http.Request) (*http.Response, error) {
	span := beginCall(request.Context(), request, serverOwn)
	response, err := o.next.RoundTrip(request)
	endCall(span, response)
	return response, err
}

// WrappedRoundTripper has client-go find what it is wrapped around.
func (o *ownCalls) WrappedRoundTripper() http.RoundTripper { return o.next }

// beginCall begins the span of a request, where something is traced.
func beginCall(ctx context.Context, request *http.Request, server string) *tracing.Span {
	if !tracing.IsTraced(ctx) {
		return nil
	}
	verb, resource := verbOf(request), resourceOf(request.URL.Path)
	if verb == verbGet && !resource.isOne && resource.name != noResource {
		verb = verbList
	}
	_, span := tracing.Begin(ctx, tracing.Call, verb+" "+resource.name)
	span.Set(tracing.Server, server)
	return span
}

// endCall ends a span by the head of the answer; nil: there is none.
func endCall(span *tracing.Span, response *http.Response) {
	if span == nil {
		return
	}
	result := resultOf(response)
	span.Set(tracing.Result, result)
	if response != nil {
		span.Number(tracing.StatusCode, response.StatusCode)
	}
	if result == resultUnreachable || result == resultFailed {
		span.Fail()
	}
	span.End()
}

const (
	// noResource is what is asked for of an API server itself, such as which kinds it has.
	noResource = "discovery"
	// strange is a resource whose name no API server has. Names come from user clusters, too.
	strange        = "other"
	longestSegment = 100
)

// resource is what a path names: its kind, with the group and what is below, and never its name.
type resource struct {
	name string
	// isOne says that the path names one object.
	isOne bool
}

// resourceOf reads a path such as /apis/apps/v1/namespaces/x/deployments/y/scale, which may stand
// behind a prefix of the server's.
func resourceOf(path string) resource {
	group, rest, found := groupOf(path)
	if !found {
		return resource{name: noResource}
	}
	if after, isNamespaced := strings.CutPrefix(rest, "namespaces/"); isNamespaced {
		if _, within, deeper := strings.Cut(after, "/"); deeper && within != "status" && within != "finalize" {
			rest = within
		}
	}
	kind, rest, _ := strings.Cut(rest, "/")
	one, below, _ := strings.Cut(rest, "/")
	below, _, _ = strings.Cut(below, "/")
	if !isWord(kind) || group != "" && !isWord(group) || below != "" && !isWord(below) {
		return resource{name: strange, isOne: one != ""}
	}
	name := kind
	if group != "" {
		name += "." + group
	}
	if below != "" {
		name += "/" + below
	}
	return resource{name: name, isOne: one != ""}
}

// groupOf finds the group in a path, and what follows the version.
func groupOf(path string) (group, rest string, found bool) {
	named, core := strings.Index(path, "/apis/"), strings.Index(path, "/api/")
	switch {
	case core >= 0 && (named < 0 || core < named): // something in it may be called "apis"
		rest = path[core+len("/api/"):]
	case named >= 0:
		group, rest, _ = strings.Cut(path[named+len("/apis/"):], "/")
	}
	_, rest, found = strings.Cut(rest, "/")
	return group, rest, found && rest != ""
}

// isWord says whether a text is one of a resource's or group's name.
func isWord(text string) bool {
	if text == "" || len(text) > longestSegment {
		return false
	}
	for _, letter := range []byte(text) {
		switch {
		case letter >= 'a' && letter <= 'z', letter >= '0' && letter <= '9', letter == '.', letter == '-':
		default:
			return false
		}
	}
	return true
}
