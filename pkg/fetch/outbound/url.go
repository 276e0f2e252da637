package outbound

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const urlLimit = 2048

// ParseURL reads a reference's URL: https (or http in labs), a host, no user part, query or
// fragment. Errors don't contain it, since it may have a password.
func (n *Network) ParseURL(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || len(text) > urlLimit || strings.ContainsFunc(text, unprintable) {
		return nil, &fetch.RefusedError{Subject: "the URL of the source", Rule: "it can't be parsed"}
	}
	if parsed.User != nil {
		return nil, refused(parsed, "the URL holds a user or password; put them into the Secret of secretRef")
	}
	if parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return nil, refused(parsed, "the URL has a query or a fragment")
	}
	return parsed, n.checkURL(parsed)
}

// HostOf is the host of an unchecked URL, with its port if it has one; "" if unknown.
func HostOf(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Host
}

func (n *Network) checkURL(at *url.URL) error {
	switch {
	case at.Scheme == "http" && !n.options.AllowInsecure:
		return refused(at, "plain http is allowed only with --allow-insecure-sources")
	case at.Scheme != "https" && at.Scheme != "http":
		return refused(at, "scheme "+strconv.Quote(at.Scheme)+" is not supported; use https")
	case at.Opaque != "" || at.Hostname() == "" || strings.HasPrefix(at.Hostname(), "-"):
		return refused(at, "the URL has no host")
	case strings.Contains(at.Hostname(), "%"):
		return refused(at, "the host is an address with a zone")
	}
	if _, err := strconv.ParseUint(port(at), 10, 16); err != nil {
		return refused(at, "the port is not a number")
	}
	return nil
}

// Mirrored is a URL's place at a mirror, or the URL itself.
func (n *Network) Mirrored(at *url.URL) *url.URL {
	if place, ok := n.options.Mirrors.URL(at.String()); ok {
		if mirrored, err := url.Parse(place); err == nil {
			return mirrored
		}
	}
	return at
}

// Shown is a URL for errors and logs: without user, password, query and fragment.
func Shown(at *url.URL) string {
	shown := url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path, RawPath: at.RawPath, Opaque: at.Opaque}
	if shown.Opaque != "" {
		return strconv.Quote(shown.Scheme + ":…")
	}
	return shown.String()
}

func unprintable(r rune) bool { return r <= ' ' || r == 0x7f || !strconv.IsPrint(r) }

func port(at *url.URL) string {
	if text := at.Port(); text != "" {
		return text
	}
	switch at.Scheme {
	case "http":
		return "80"
	case "ssh":
		return "22"
	}
	return "443"
}

// sameHost compares host and port; http to https on the default ports counts as the same.
func sameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return port(a) == port(b) || a.Scheme == "http" && port(a) == "80" && b.Scheme == "https" && port(b) == "443"
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}
