package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const redirectLimit = 3

// agent is what servers read in their logs.
const agent = "trellis"

// Request is what a source asks a server for.
type Request struct {
	// Method is GET or POST. A POST takes no redirect: its body was meant for the server that was asked.
	Method string
	// URL is where to, as ParseURL gives it.
	URL *url.URL
	// Header is sent to every hop; it never holds credentials.
	Header http.Header
	// Body of a POST.
	Body []byte
	// Origin is the URL of the reference that the credentials are for.
	Origin *url.URL
	// Credentials go to the origin and the hosts they name.
	Credentials fetch.Credentials
	// OtherHosts lets redirects leave the host of URL; they take no credentials with them.
	OtherHosts bool
	// Limit is the most bytes that the answer may have.
	Limit int64
	// Challenged lets an answer 401 come back, for its header that says how to log in.
	Challenged bool
}

// Answer is a response whose body keeps to the limits. The body must be closed.
type Answer struct {
	Status int
	Header http.Header
	// URL is where the answer came from, after redirects.
	URL  *url.URL
	Body io.ReadCloser
	// Sent says whether credentials went to that place.
	Sent bool
}

// Do makes a request. Answers of every status come back, but for redirects, which are followed or refused, and for 401
// and 403, which are an UnauthorizedError (see Challenged).
func (n *Network) Do(ctx context.Context, request Request) (*Answer, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodPost {
		return nil, fmt.Errorf("method %q is neither GET nor POST", request.Method)
	}
	pool, err := n.pool(request.Credentials.CA)
	if err != nil {
		return nil, err
	}
	if request.OtherHosts {
		request.URL = n.Mirrored(request.URL)
	}
	target, trusted := request.URL, true
	for hops := 0; ; hops++ {
		trusted = trusted && (hops == 0 || sameOrigin(request.URL, target))
		answer, err := n.hop(ctx, pool, request, target, trusted)
		if err != nil {
			return nil, err
		}
		location := answer.Header.Get("Location")
		if !isRedirect(answer.Status) || location == "" {
			return finished(answer, request.Challenged)
		}
		answer.Body.Close()
		if hops == redirectLimit {
			return nil, refused(request.URL, fmt.Sprintf("it redirects more than %d times", redirectLimit))
		}
		if target, err = n.redirect(request, target, location); err != nil {
			return nil, err
		}
	}
}

func (n *Network) hop(ctx context.Context, pool *http.Transport, request Request, target *url.URL, trusted bool) (*Answer, error) {
	if err := n.checkURL(target); err != nil {
		return nil, err
	}
	visit, err := n.hosts.enter(ctx, target)
	if err != nil {
		return nil, err
	}
	answer, err := n.exchange(ctx, pool, request, visit, trusted)
	if err != nil {
		visit.leave()
		return nil, err
	}
	return answer, nil
}

// exchange sends and reads up to the header of the answer, whose body gives the visit back.
func (n *Network) exchange(ctx context.Context, pool *http.Transport, request Request, visit *visit, trusted bool) (*Answer, error) {
	target := visit.at
	watch := newWatch(ctx, n.options.Timeout, n.options.IdleTimeout)
	outgoing, err := http.NewRequestWithContext(watch.ctx, request.Method, target.String(), bytes.NewReader(request.Body))
	if err != nil {
		watch.stop()
		return nil, refused(target, "it is no URL to ask")
	}
	maps.Copy(outgoing.Header, request.Header)
	outgoing.Header.Set("User-Agent", agent)
	sent := trusted && authorize(outgoing, request)
	response, err := pool.RoundTrip(outgoing)
	if err != nil {
		err = watch.cause(err)
		watch.stop()
		visit.failed(err)
		return nil, unavailable(target, err)
	}
	if err := visit.answered(response); err != nil {
		watch.stop()
		response.Body.Close()
		return nil, err
	}
	return &Answer{
		Status: response.StatusCode, Header: response.Header, URL: target, Sent: sent,
		Body: &body{from: response.Body, watch: watch, visit: visit, left: request.Limit, limit: request.Limit, url: target},
	}, nil
}

// finished turns statuses about credentials into an error.
func finished(answer *Answer, challenged bool) (*Answer, error) {
	isChallenge := challenged && answer.Status == http.StatusUnauthorized
	if isChallenge || answer.Status != http.StatusUnauthorized && answer.Status != http.StatusForbidden {
		return answer, nil
	}
	answer.Body.Close()
	return nil, &fetch.UnauthorizedError{Subject: Shown(answer.URL), Status: answer.Status, Sent: answer.Sent}
}

// Problem is why an answer is not what was asked for. Missing is what a server does not have that says so.
func (a *Answer) Problem(missing string) error {
	switch {
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		return &fetch.NotFoundError{What: missing}
	case a.Status != http.StatusOK:
		return &fetch.UnavailableError{Subject: Shown(a.URL), Err: fmt.Errorf("the server answers with status %d", a.Status)}
	case a.Header.Get("Content-Encoding") != "":
		return refused(a.URL, "the answer has a content encoding, which was not asked for")
	}
	return nil
}

func (n *Network) redirect(request Request, from *url.URL, location string) (*url.URL, error) {
	if request.Method != http.MethodGet {
		return nil, refused(from, "it redirects a request with content")
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, refused(from, "it redirects to what is no URL")
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, refused(from, "it redirects to another scheme than https")
	}
	if !request.OtherHosts && !sameHost(from, to) {
		return nil, refused(from, "it redirects to another host")
	}
	if request.OtherHosts {
		to = n.Mirrored(to)
	}
	return to, n.checkURL(to)
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// Operation gives the context for all requests that belong to one look or one fetch: together they get one timeout.
func (n *Network) Operation(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, n.options.Timeout, tookTooLong(n.options.Timeout))
}

func tookTooLong(limit time.Duration) error {
	return &silentError{text: fmt.Sprintf("not done within %s", limit)}
}

func refused(at *url.URL, rule string) error {
	return &fetch.RefusedError{Subject: Shown(at), Rule: rule}
}

// unavailable wraps what went wrong on the way; a refused address stays a refusal.
func unavailable(at *url.URL, err error) error {
	if rule, ok := errors.AsType[*fetch.RefusedError](err); ok {
		return &fetch.RefusedError{Subject: Shown(at), Rule: rule.Error()}
	}
	return &fetch.UnavailableError{Subject: Shown(at), Err: err}
}

// authorize puts credentials on a request, if they are meant for where it goes, and says whether it did.
func authorize(outgoing *http.Request, request Request) bool {
	credentials := request.Credentials
	if credentials.BearerToken == "" && credentials.Username == "" && credentials.Password == "" {
		return false
	}
	if request.Origin == nil || !MeantFor(credentials, request.Origin, outgoing.URL) {
		return false
	}
	if credentials.BearerToken != "" {
		outgoing.Header.Set("Authorization", "Bearer "+credentials.BearerToken)
		return true
	}
	outgoing.SetBasicAuth(credentials.Username, credentials.Password)
	return true
}

// MeantFor says whether credentials of a reference may be sent to a host: to scheme, host and port of the origin, where
// their Secret names no hosts, else to those it names, under the origin's scheme.
func MeantFor(credentials fetch.Credentials, origin, target *url.URL) bool {
	if len(credentials.Hosts) == 0 {
		return sameOrigin(origin, target)
	}
	return origin.Scheme == target.Scheme && slices.ContainsFunc(credentials.Hosts, func(entry string) bool {
		return listed(strings.TrimSpace(entry), origin, target)
	})
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
