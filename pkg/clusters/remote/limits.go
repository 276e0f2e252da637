package remote

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// limits of one answer. Values matter more than bytes: "{}" decodes to a hundred times its bytes.
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
	case (request.Method == http.MethodGet || request.Method == http.MethodDelete) && isCollection(path): // a deletion returns a list
		return listLimits
	}
	return objectLimits
}

// resourcePath is the path after the group version: "namespaces/x/pods/y".
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

// isDiscovery says whether a path is for groups, versions, or the kinds of a version.
func isDiscovery(path string) bool {
	if path != "/api" && path != "/apis" && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/apis/") {
		return false
	}
	rest, found := resourcePath(path)
	return !found || rest == ""
}

// isCollection says whether a path is for all objects of a kind.
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

// Totals bound several calls together; 0: no limit.
type Totals struct {
	// Items are the elements of all pages.
	Calls, Items int
	Bytes        int64
	// Time is from the first call to the last byte.
	Time time.Duration
}

// ListTotals are for all pages of one list.
var ListTotals = Totals{Calls: 400, Items: 100_000, Bytes: 256 << 20, Time: 2 * time.Minute}

// PassTotals are for one reconciliation of an installation; its queue bounds the time.
var PassTotals = Totals{Calls: 20_000, Items: 500_000, Bytes: 1 << 30}

// ledger adds up the costs of calls, also in the outer ledger.
type ledger struct {
	what   string
	totals Totals
	above  *ledger
	begun  time.Time

	mutex sync.Mutex
	calls int
	items int
	bytes int64
}

type ledgerKey struct{}

// Within makes all calls with the returned context count together: beyond the totals they fail with a
// MisbehavesError, which names them by what: "the list of ConfigMaps". A nested ledger counts in both.
func Within(ctx context.Context, what string, totals Totals) context.Context {
	above, _ := ctx.Value(ledgerKey{}).(*ledger)
	return context.WithValue(ctx, ledgerKey{}, &ledger{what: what, totals: totals, above: above, begun: time.Now()})
}

func ledgerOf(ctx context.Context) *ledger {
	found, _ := ctx.Value(ledgerKey{}).(*ledger)
	return found
}

// charge adds to a ledger and the outer ones, and returns the limit that was exceeded, or "".
func (l *ledger) charge(calls, items int, bytes int64) string {
	for ; l != nil; l = l.above {
		if beyond := l.add(calls, items, bytes); beyond != "" {
			return beyond
		}
	}
	return ""
}

func (l *ledger) add(calls, items int, bytes int64) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.calls, l.items, l.bytes = l.calls+calls, l.items+items, l.bytes+bytes
	switch most := l.totals; {
	case most.Calls > 0 && l.calls > most.Calls:
		return fmt.Sprintf("%s does not end after %d calls", l.what, most.Calls)
	case most.Items > 0 && l.items > most.Items:
		return fmt.Sprintf("%s has more than %d items", l.what, most.Items)
	case most.Bytes > 0 && l.bytes > most.Bytes:
		return fmt.Sprintf("%s has more than %d MiB", l.what, most.Bytes>>20)
	case most.Time > 0 && time.Since(l.begun) > most.Time:
		return fmt.Sprintf("%s takes longer than %s", l.what, most.Time)
	}
	return ""
}
