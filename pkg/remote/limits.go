package remote

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// limits of one answer. Values count more than bytes: "{}" costs a decoder a hundred times what it takes on the wire.
type limits struct {
	bytes int64
	// values are objects, lists, texts, numbers, true, false and null.
	values int
	depth  int
	// text is the longest text or number, name the longest name of a member, in bytes as they are written.
	text, name int
	// items is the most elements of one list, or members of one object.
	items int
}

const (
	mebi = 1 << 20
	kibi = 1 << 10
)

// What is asked for decides. The figures leave room above what real API servers answer: etcd takes objects of 1.5 MiB, a
// page of 500 Deployments with managed fields has some 8 MiB and 300,000 values, discovery of 5000 kinds 4 MiB and 200,000.
var (
	versionLimits   = limits{bytes: 64 * kibi, values: 128, depth: 8, text: 4 * kibi, name: kibi, items: 64}
	discoveryLimits = limits{bytes: 16 * mebi, values: 400_000, depth: 16, text: 4 * kibi, name: kibi, items: 10_000}
	listLimits      = limits{bytes: 32 * mebi, values: 1_000_000, depth: 128, text: 12 * mebi, name: 64 * kibi, items: 100_000}
	objectLimits    = limits{bytes: 16 * mebi, values: 500_000, depth: 128, text: 12 * mebi, name: 64 * kibi, items: 100_000}
	failureLimits   = limits{bytes: 4 * mebi, values: 50_000, depth: 32, text: 2 * mebi, name: 64 * kibi, items: 20_000}
)

// plainLimit is how much is read of an answer that fails and is neither JSON nor protobuf; the rest is left.
const plainLimit = 64 * kibi

// limitsOf are those of a good answer to a request.
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

// resourcePath is what comes after the group version: "namespaces/x/pods/y".
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

// isDiscovery says whether a path stands for groups, versions, or the kinds of a version.
func isDiscovery(path string) bool {
	if path != "/api" && path != "/apis" && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/apis/") {
		return false
	}
	rest, found := resourcePath(path)
	return !found || rest == ""
}

// isCollection says whether a path stands for all objects of a kind.
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

// UIDLength is that of the UIDs which API servers make (RFC 9562).
const UIDLength = 36

// IsUID says whether a text may be the UID of an object: letters, digits and hyphens, no hyphen at an end, as many as an API server
// makes or fewer. It can be shown, kept in a record, and be the value of a label.
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
