package query

import (
	"context"
	"net/http"
	"strings"
)

const (
	// PathOpenAPI serves the OpenAPI document, without authentication.
	PathOpenAPI = "/openapi.json"

	pathAddons           = "/api/v1/addons"
	pathVersion          = "/api/v1/addons/{name}/versions/{version}"
	pathNamespaceAddons  = "/api/v1/namespaces/{namespace}/addons"
	pathNamespaceVersion = "/api/v1/namespaces/{namespace}/addons/{name}/versions/{version}"
	pathUpgradeCheck     = "/api/v1/upgrade-check"
	pathPreview          = "/api/v1/namespaces/{namespace}/preview"
	pathInstallations    = "/api/v1/installations"
	pathInstallation     = "/api/v1/namespaces/{namespace}/installations/{name}"
	pathClusters         = "/api/v1/clusters"
	pathSets             = "/api/v1/sets"
	pathSet              = "/api/v1/sets/{name}"
	pathSetPreview       = "/api/v1/sets/{name}/preview"
	pathImages           = "/api/v1/images"
	pathWatch            = "/api/v1/watch"
)

// route is one path with its method. GET includes HEAD.
type route struct {
	method, path string
	// open routes need no authentication.
	open bool
	// isOwn: an answer is made for one request, so few are in memory at a time.
	isOwn bool
	// parameters are the allowed names of the query.
	parameters []string
	// mostBody is the limit of the body in bytes; 0: the endpoint's.
	mostBody int64
	answer   func(*Server, context.Context, *call) (*content, error)

	segments []string
}

type call struct {
	request  *http.Request
	identity *Identity
	path     map[string]string
	// given are the parameters.
	given given
	// end ends the turn of an answer that is made for this request; nil: it has none.
	end func()
}

// done is called when the answer is written.
func (c *call) done() {
	if c.end != nil {
		c.end()
	}
}

// routes are all routes; openapi.json describes the same.
var routes = withSegments([]route{
	{
		method: http.MethodGet, path: pathAddons, answer: (*Server).addons,
		parameters: []string{"kkpVersion", "k8sVersion", "explain", "descriptions"},
	},
	{method: http.MethodGet, path: pathVersion, answer: (*Server).version},
	{
		method: http.MethodGet, path: pathNamespaceAddons, answer: (*Server).namespaceAddons,
		parameters: []string{"cluster", "explain", "descriptions"},
	},
	{method: http.MethodGet, path: pathNamespaceVersion, parameters: []string{"cluster"}, answer: (*Server).namespaceVersion},
	{method: http.MethodPost, path: pathUpgradeCheck, isOwn: true, parameters: []string{"cluster"}, answer: (*Server).upgradeCheck},
	{
		method: http.MethodPost, path: pathPreview, isOwn: true, parameters: []string{"live"}, mostBody: mostPreviewBody,
		answer: (*Server).preview,
	},
	{
		method: http.MethodGet, path: pathInstallations, isOwn: true, answer: (*Server).installations,
		parameters: []string{"namespace", "cluster", "addon", "state", "search", "sort", "after", "limit"},
	},
	{method: http.MethodGet, path: pathInstallation, isOwn: true, parameters: []string{"revisions"}, answer: (*Server).installation},
	{method: http.MethodGet, path: pathClusters, isOwn: true, parameters: []string{"namespace", "after", "limit"}, answer: (*Server).clusters},
	{method: http.MethodGet, path: pathSets, isOwn: true, answer: (*Server).sets},
	{method: http.MethodGet, path: pathSet, isOwn: true, answer: (*Server).set},
	{method: http.MethodPost, path: pathSetPreview, isOwn: true, mostBody: mostPreviewBody, answer: (*Server).setPreview},
	{method: http.MethodGet, path: pathImages, isOwn: true, parameters: []string{"namespace", "cluster"}, answer: (*Server).images},
	{
		method: http.MethodGet, path: pathWatch, parameters: []string{"namespace", "cluster", "addon", "state", "search"},
		answer: (*Server).watch,
	},
	{method: http.MethodGet, path: PathOpenAPI, open: true, answer: (*Server).openAPI},
})

func withSegments(table []route) []route {
	for i := range table {
		table[i].segments = strings.Split(table[i].path, "/")
	}
	return table
}

func (r *route) allows(method string) bool {
	return method == r.method || method == http.MethodHead && r.method == http.MethodGet
}

func (r *route) allowed() []string {
	if r.method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{r.method}
}

// match returns the path's parts in the route's braces; false for another path.
func (r *route) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	var parts map[string]string
	for i, want := range r.segments {
		if !strings.HasPrefix(want, "{") {
			if segments[i] != want {
				return nil, false
			}
			continue
		}
		if parts == nil {
			parts = map[string]string{}
		}
		parts[strings.Trim(want, "{}")] = segments[i]
	}
	return parts, true
}

// find returns the route of a request. Errors: *NotFoundError, *MethodError.
func find(method, path string) (*route, map[string]string, error) {
	segments := strings.Split(path, "/")
	for i := range routes {
		parts, ok := routes[i].match(segments)
		if !ok {
			continue
		}
		if !routes[i].allows(method) {
			return &routes[i], nil, &MethodError{routes[i].allowed()}
		}
		return &routes[i], parts, nil
	}
	return nil, nil, &NotFoundError{}
}
