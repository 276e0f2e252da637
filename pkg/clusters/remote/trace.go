package remote

import (
	"net/http"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
)

// Owners of the API server of a span.
const (
	serverOwn    = "own"
	serverRemote = "remote"
)

// Traced traces the calls of reconciliations to the manager's own API server, which uses no Client. Host is the one of its
// configuration.
func Traced(host string) func(http.RoundTripper) http.RoundTripper {
	prefix := pathOf(host)
	return func(next http.RoundTripper) http.RoundTripper { return &ownCalls{next, prefix} }
}

type ownCalls struct {
	next http.RoundTripper
	// prefix begins all paths.
	prefix string
}

// RoundTrip implements http.RoundTripper.
func (o *ownCalls) RoundTrip(request *http.Request) (*http.Response, error) {
	span := beginCall(request, serverOwn, o.prefix)
	response, err := o.next.RoundTrip(request)
	endCall(span, response)
	return response, err
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (o *ownCalls) WrappedRoundTripper() http.RoundTripper { return o.next }

// beginCall begins the span of a request, if the context is traced. Prefix begins the server's paths.
func beginCall(request *http.Request, server, prefix string) *tracing.Span {
	ctx := request.Context()
	if !tracing.IsTraced(ctx) {
		return nil
	}
	verb, resource := verbOf(request), resourceOf(request.URL.Path, prefix)
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
	// noResource is for requests about an API server itself, such as its kinds.
	noResource = "discovery"
	// strange is a resource with a name that no API server has. Names come from user clusters, too.
	strange        = "other"
	longestSegment = 100
)

// resource is the kind in a path, with its group and subresource, and never a name.
type resource struct {
	name string
	// isOne says that the path names one object.
	isOne bool
}

// pathOf is the prefix of the paths of all calls to a host: "", or for example /k8s/clusters/c-1.
func pathOf(host string) string {
	target, _, err := rest.DefaultServerURL(host, "", schema.GroupVersion{}, true)
	if err != nil {
		return "" // calls fail, too
	}
	return strings.TrimSuffix(path.Join("/", target.Path), "/")
}

// resourceOf reads a path such as /apis/apps/v1/namespaces/x/deployments/y/scale after the server's prefix. The prefix may be a
// secret, and may look like such a path itself.
func resourceOf(path, prefix string) resource {
	path, isBelow := strings.CutPrefix(path, prefix)
	if !isBelow {
		return resource{name: strange}
	}
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

// groupOf finds the group in a path, and the rest after the version.
func groupOf(path string) (group, rest string, found bool) {
	rest, isCore := strings.CutPrefix(path, "/api/")
	if !isCore {
		named, _ := strings.CutPrefix(path, "/apis/")
		if named == path {
			return "", "", false
		}
		group, rest, _ = strings.Cut(named, "/")
	}
	_, rest, found = strings.Cut(rest, "/")
	return group, rest, found && rest != ""
}

// isWord says whether a text can be a part of a resource's or group's name.
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
