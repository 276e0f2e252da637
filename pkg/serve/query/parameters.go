package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	mostQuery   = 1024
	mostVersion = 128
	mostBody    = 16 << 10
	// mostPreviewBody is what one AddonInstallation may have.
	mostPreviewBody = 320 << 10
	mostToken       = 8 << 10
	// mostShown is the number of bytes of a wrong value that its refusal repeats.
	mostShown = 40
)

// versionText is the form of a platform's version; catalogue.PlatformVersion parses it.
var versionText = regexp.MustCompile(`^[0-9A-Za-z.+~_-]{1,` + strconv.Itoa(mostVersion) + `}$`)

// nameText is a DNS label: the name of a namespace or an add-on.
var nameText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// clusterText is the form of a Cluster's name, of at most mostClusterName characters.
var clusterText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

const mostClusterName = 253

// addonVersionText is the schema's pattern of an add-on's version.
var addonVersionText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$`)

// bearer reads the token of a request. Errors: *UnauthenticatedError.
func bearer(header http.Header) (string, error) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", &UnauthenticatedError{}
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > mostToken {
		return "", &UnauthenticatedError{}
	}
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return "", &UnauthenticatedError{}
		}
	}
	return token, nil
}

// queries caches parsed parameters: callers repeat the same ones.
type queries struct{ known *lru.Cache[queryKey, given] }

// mostQueries and mostQueryCached bound this cache: the number of queries, and the bytes of each.
const (
	mostQueries     = 1024
	mostQueryCached = 256
)

func newQueries() *queries { return &queries{known: lru.New[queryKey, given](mostQueries, nil)} }

type queryKey struct{ path, raw string }

// given are the parameters of a query. kkpVersion may be empty; a k8sVersion of the route is
// required.
type given struct {
	pair
	// live asks for a dry run in the user cluster.
	live bool
	// revisions asks for what is on record.
	revisions bool
	// rows selects installations. Of routes about one cluster, it has its name in the requested namespace; "": KKP's cluster there.
	rows rowQuery
}

func (q *queries) read(raw string, route *route) (given, error) {
	if raw == "" && len(route.parameters) == 0 {
		return given{}, nil
	}
	key := queryKey{route.path, raw}
	if known, ok := q.known.Get(key); ok {
		return known, nil
	}
	isKept := len(raw) <= mostQueryCached
	if isKept {
		raw = strings.Clone(raw) // what is read from it would keep the whole request line
		key.raw = raw
	}
	values, err := parameters(raw, route.parameters...)
	if err != nil {
		return given{}, err
	}
	read := given{}
	if read.pair, err = asked(values, slices.Contains(route.parameters, "k8sVersion")); err != nil {
		return given{}, err
	}
	if read.live, err = flag(values, "live"); err != nil {
		return given{}, err
	}
	if read.revisions, err = flag(values, "revisions"); err != nil {
		return given{}, err
	}
	read.rows, err = readRows(values)
	if err == nil && isKept {
		q.known.Put(key, read, lru.Forever)
	}
	return read, err
}

// asked reads a platform from a query; kkpVersion may be empty. Errors: *ParameterError.
func asked(query map[string]string, needsVersion bool) (key pair, err error) {
	if given := query["k8sVersion"]; given != "" {
		if key.k8s, err = platformVersion("k8sVersion", given); err != nil {
			return pair{}, err
		}
	} else if needsVersion {
		return pair{}, &ParameterError{"k8sVersion", "it is missing: name the cluster's Kubernetes version, such as 1.36.3"}
	}
	if given := query["kkpVersion"]; given != "" {
		if key.kkp, err = platformVersion("kkpVersion", given); err != nil {
			return pair{}, err
		}
	}
	if key.explain, err = flag(query, "explain"); err != nil {
		return pair{}, err
	}
	key.describe, err = flag(query, "descriptions")
	return key, err
}

// parameters reads a query: each known name at most once, and no other. Errors: *ParameterError.
func parameters(raw string, known ...string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	if len(raw) > mostQuery {
		return nil, &ParameterError{"query", fmt.Sprintf("it has %d bytes, at most %d are allowed", len(raw), mostQuery)}
	}
	parsed, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &ParameterError{"query", "it is not written as name=value&name=value"}
	}
	values := make(map[string]string, len(parsed))
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		given := parsed[name]
		if !slices.Contains(known, name) {
			return nil, &ParameterError{shown(name), "there is no such parameter; " + thereAre(known)}
		}
		if len(given) > 1 {
			return nil, &ParameterError{name, "it is given more than once"}
		}
		values[name] = given[0]
	}
	return values, nil
}

func thereAre(known []string) string {
	if len(known) == 0 {
		return "this request has none"
	}
	return "use one of " + strings.Join(known, ", ")
}

// platformVersion returns the canonical form of a version. Errors: *ParameterError.
func platformVersion(name, text string) (string, error) {
	// An unescaped plus sign arrives as a space.
	text = strings.ReplaceAll(text, " ", "+")
	if !versionText.MatchString(text) {
		return "", badVersion(name, text)
	}
	parsed, ok := catalogue.PlatformVersion(text)
	if !ok {
		return "", badVersion(name, text)
	}
	return parsed.String(), nil
}

func badVersion(name, text string) error {
	return &ParameterError{name, fmt.Sprintf("%q is not a version: write one like 1.36.3", shown(text))}
}

func shown(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return strings.ToValidUTF8(text[:mostShown], "") + "..."
}

func flag(values map[string]string, name string) (bool, error) {
	text, given := values[name]
	switch {
	case !given, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	}
	return false, &ParameterError{name, fmt.Sprintf("%q is neither true nor false", shown(text))}
}

func name(parameter, text string) (string, error) {
	if !nameText.MatchString(text) {
		return "", &ParameterError{parameter, fmt.Sprintf("%q is not a name: write up to 63 of a-z, 0-9 and -", shown(text))}
	}
	return text, nil
}

// objectName reads the name of an object. Errors: *ParameterError.
func objectName(text string) (string, error) {
	if len(text) > mostClusterName || !clusterText.MatchString(text) {
		return "", &ParameterError{"name", fmt.Sprintf("%q is not a name of an object", shown(text))}
	}
	return text, nil
}

// clusterName reads the name of a cluster in a namespace. Errors: *ParameterError.
func clusterName(values map[string]string) (string, error) {
	name, isGiven := values["cluster"]
	if isGiven && (len(name) > mostClusterName || !clusterText.MatchString(name)) {
		return "", &ParameterError{"cluster", fmt.Sprintf("%q is not a name of a Cluster", shown(name))}
	}
	return name, nil
}

func addonVersion(parameter, text string) (string, error) {
	if !addonVersionText.MatchString(text) {
		return "", &ParameterError{parameter, fmt.Sprintf("%q is not a version of an add-on", shown(text))}
	}
	return text, nil
}

// body reads a JSON object with known fields only. A body without a type counts as JSON: kubectl
// sends none. Errors: *ParameterError, *TooLargeError, *MediaTypeError.
func body(request *http.Request, into any) error {
	if !isJSON(request.Header["Content-Type"]) {
		return &MediaTypeError{}
	}
	var err error
	decoder := json.NewDecoder(request.Body)
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(into); err == nil {
		if _, after := decoder.Token(); !errors.Is(after, io.EOF) {
			err = errAfter
		}
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &TooLargeError{tooLarge.Limit}
	}
	if err != nil {
		return &ParameterError{"body", "it is not the JSON object that the OpenAPI document describes"}
	}
	return nil
}

func isJSON(types []string) bool {
	if len(types) == 0 {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return len(types) == 1 && err == nil && kind == "application/json"
}

var errAfter = errors.New("there is data after the object")
