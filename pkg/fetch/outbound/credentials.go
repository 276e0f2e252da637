package outbound

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

// authorize puts credentials on a request, if they are meant for where it goes, and says whether it did.
func authorize(outgoing *http.Request, request Request) bool {
	credentials := request.Credentials
	if credentials.BearerToken == "" && credentials.Username == "" && credentials.Password == "" {
		return false
	}
	if request.Origin == nil || !meantFor(credentials, request.Origin, outgoing.URL) {
		return false
	}
	if credentials.BearerToken != "" {
		outgoing.Header.Set("Authorization", "Bearer "+credentials.BearerToken)
		return true
	}
	outgoing.SetBasicAuth(credentials.Username, credentials.Password)
	return true
}

// meantFor: credentials are bound to scheme, host and port of their origin. A list of hosts narrows that, and names other
// hosts which they may go to under the same scheme.
func meantFor(credentials fetch.Credentials, origin, target *url.URL) bool {
	if len(credentials.Hosts) == 0 {
		return sameOrigin(origin, target)
	}
	if origin.Scheme != target.Scheme {
		return false
	}
	for _, entry := range credentials.Hosts {
		if listed(strings.TrimSpace(entry), origin, target) {
			return true
		}
	}
	return false
}

// listed: an entry with a port means that port; one without means the default port, or the origin's own.
func listed(entry string, origin, target *url.URL) bool {
	host, entryPort, err := net.SplitHostPort(entry)
	if err != nil {
		host, entryPort = strings.Trim(entry, "[]"), ""
	}
	if host == "" || !strings.EqualFold(host, target.Hostname()) {
		return false
	}
	if entryPort != "" {
		return entryPort == port(target)
	}
	return sameOrigin(origin, target) || port(target) == port(&url.URL{Scheme: target.Scheme})
}
