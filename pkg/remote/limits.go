package remote

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// limits of one answer. Values matter more than bytes: a decoded "{}" needs a hundred times its
// bytes.
type limits struct {
	bytes int64
	// values are objects, lists, texts, numbers, true, false and null.
	values int
	depth  int
	// text is the longest text or number, name the longest member name, in encoded bytes.
	text, name int
	// items is the most elements of a list, or members of an object.
	items int
}

const (
	mebi = 1 << 20
	kibi = 1 << 10
)

// Limits by request, above real answers: etcd accepts objects of 1.5 MiB, 500 Deployments with
// managed fields have about 8 MiB and 300,000 values, discovery of 5000 kinds 4 MiB and 200,000.
var (
	versionLimits   = limits{bytes: 64 * kibi, values: 128, depth: 8, text: 4 * kibi, name: kibi, items: 64}
	discoveryLimits = limits{bytes: 16 * mebi, values: 400_000, depth: 16, text: 4 * kibi, name: kibi, items: 10_000}
	listLimits      = limits{bytes: 32 * mebi, values: 1_000_000, depth: 128, text: 12 * mebi, name: 64 * kibi, items: 100_000}
	objectLimits    = limits{bytes: 16 * mebi, values: 500_000, depth: 128, text: 12 * mebi, name: 64 * kibi, items: 100_000}
	failureLimits   = limits{bytes: 4 * mebi, values: 50_000, depth: 32, text: 2 * mebi, name: 64 * kibi, items: 20_000}
)

// plainLimit bounds a failure that is neither JSON nor protobuf.
const plainLimit = 64 * kibi

func limitsOf(request *http.Request) limits {
	path := request.URL.Path
	switch {
	case path == "/version":
		return versionLimits
	case isDiscovery(path):
		return discoveryLimits
	case (request.Method == http.MethodGet || request.Method == http.MethodDelete) && isCollection(path): // what is deleted is listed
		return listLimits
	}
	return objectLimits
}

// resourcePath is what follows the group version: "namespaces/x/pods/y".
func resourcePath(path string) (rest string, found bool) {
	if after, ok := strings.CutPrefix(path, "/api/"); ok {
		_, rest, found = strings.Cut(after, "/")
		return rest, found
	}
	if after, ok := strings.CutPrefix(path, "/apis/"); ok {
		_, after, _ = strings.Cut(after, "/")
		_, rest, found = strings.Cut(after, "/")
		return rest, found
	}
	return "", false
}

// isDiscovery says whether a path is that of groups, versions, or the kinds of a version.
func isDiscovery(path string) bool {
	if path != "/api" && path != "/apis" && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/apis/") {
		return false
	}
	rest, found := resourcePath(path)
	return !found || rest == ""
}

// isCollection says whether a path is that of all objects of a kind.
func isCollection(path string) bool {
	rest, found := resourcePath(path)
	if !found {
		return false
	}
	segments := strings.Split(rest, "/")
	if segments[0] == "namespaces" && len(segments) > 1 {
		return len(segments) == 3 && segments[2] != "status" && segments[2] != "finalize" // these are parts of the Namespace itself
	}
	return len(segments) == 1
}

// UIDLength is the length of UIDs that API servers make (RFC 9562).
const UIDLength = 36

// IsUID says whether a text can be a UID: at most 36 letters, digits and inner hyphens. Such a text
// is safe for messages, records and labels.
func IsUID(uid types.UID) bool {
	if uid == "" || len(uid) > UIDLength || uid[0] == '-' || uid[len(uid)-1] == '-' {
		return false
	}
	for _, char := range []byte(uid) {
		letter := 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z'
		if digit := '0' <= char && char <= '9'; !letter && !digit && char != '-' {
			return false
		}
	}
	return true
}
