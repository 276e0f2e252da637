package outbound

import (
	"bytes"
	"context"
	"crypto/x509"
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

const agent = "trellis"

// Request is a source's request to a server.
type Request struct {
	// Method is GET or POST. A POST follows no redirect: its body is only for that server.
	Method string
	// URL is checked by ParseURL.
	URL *url.URL
	// Header is sent to every hop; it never has credentials.
	Header http.Header
	// Body of a POST.
	Body []byte
	// Origin is the URL of the reference that the credentials are for.
	Origin *url.URL
	// Credentials go to the origin and the hosts they name.
	Credentials fetch.Credentials
	// OtherHosts allows redirects to other hosts, without credentials.
	OtherHosts bool
	// Limit is the maximum size of the answer, in bytes.
	Limit int64
	// Challenged returns status 401 as an answer, for its header that says how to log in.
	Challenged bool
}

// Answer is a response with a bounded body, which must be closed.
type Answer struct {
	Status int
	Header http.Header
	// URL is the URL of the answer, after redirects.
	URL  *url.URL
	Body io.ReadCloser
	// Sent reports whether credentials were sent there.
	Sent bool
}

// Do makes a request. It returns answers of every status, except redirects, which are followed or
// refused, and 401 and 403, which are an UnauthorizedError (see Challenged).
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

// exchange sends and reads up to the answer's header. Closing the body ends the visit.
func (n *Network) exchange(ctx context.Context, pool *http.Transport, request Request, visit *visit, trusted bool) (*Answer, error) {
	target := visit.at
	watch := newWatch(ctx, n.options.Timeout, n.options.IdleTimeout)
	outgoing, err := http.NewRequestWithContext(watch.ctx, request.Method, target.String(), bytes.NewReader(request.Body))
	if err != nil {
		watch.stop()
		return nil, refused(target, "it is not a URL for requests")
	}
	maps.Copy(outgoing.Header, request.Header)
	outgoing.Header.Set("User-Agent", agent)
	sent := trusted && authorize(outgoing, request)
	span := beginRequest(ctx, request.Method, target)
	response, err := pool.RoundTrip(outgoing)
	endRequest(span, response)
	if err != nil {
		err = watch.cause(err)
		watch.stop()
		visit.failed(ctx, err)
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

func finished(answer *Answer, challenged bool) (*Answer, error) {
	isChallenge := challenged && answer.Status == http.StatusUnauthorized
	if isChallenge || answer.Status != http.StatusUnauthorized && answer.Status != http.StatusForbidden {
		return answer, nil
	}
	answer.Body.Close()
	return nil, &fetch.UnauthorizedError{Subject: Shown(answer.URL), Status: answer.Status, Sent: answer.Sent}
}

// Problem is an error for an unexpected answer. Missing describes the meaning of status 404.
func (a *Answer) Problem(missing string) error {
	switch {
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		return &fetch.NotFoundError{What: missing}
	case a.Status != http.StatusOK:
		return &fetch.UnavailableError{Subject: Shown(a.URL), Err: fmt.Errorf("the server answers with status %d", a.Status)}
	case a.Header.Get("Content-Encoding") != "":
		return refused(a.URL, "the answer has a content encoding that was not requested")
	}
	return nil
}

func (n *Network) redirect(request Request, from *url.URL, location string) (*url.URL, error) {
	if request.Method != http.MethodGet {
		return nil, refused(from, "it redirects a request that has a body")
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil, refused(from, "it redirects to an address that is not a URL")
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, refused(from, "it redirects to a scheme other than https")
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

// Operation returns the context for all requests of one Resolve or Fetch, with one timeout.
func (n *Network) Operation(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, n.options.Timeout, tookTooLong(n.options.Timeout))
}

func tookTooLong(limit time.Duration) error {
	return &silentError{text: fmt.Sprintf("it did not end within %s", limit)}
}

func refused(at *url.URL, rule string) error {
	return &fetch.RefusedError{Subject: Shown(at), Rule: rule}
}

// unavailable wraps a transport error; a refused address stays a refusal, and an unknown authority gets a hint.
func unavailable(at *url.URL, err error) error {
	if rule, ok := errors.AsType[*fetch.RefusedError](err); ok {
		return &fetch.RefusedError{Subject: Shown(at), Rule: rule.Error()}
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		err = fmt.Errorf("%w: set caSecretRef to a Secret with the CA certificate", err)
	}
	return &fetch.UnavailableError{Subject: Shown(at), Err: err}
}

// authorize adds credentials if they are meant for the request's host, and reports whether it did.
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

// MeantFor reports whether a reference's credentials may be sent to a host: to the hosts that their Secret names,
// under the origin's scheme, otherwise to the origin's scheme, host and port.
func MeantFor(credentials fetch.Credentials, origin, target *url.URL) bool {
	if len(credentials.Hosts) == 0 {
		return sameOrigin(origin, target)
	}
	return origin.Scheme == target.Scheme && slices.ContainsFunc(credentials.Hosts, func(entry string) bool {
		return listed(strings.TrimSpace(entry), origin, target)
	})
}

// listed compares a host with an entry. An entry without a port means the default port, or the origin's own.
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
