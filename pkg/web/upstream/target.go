// Package upstream calls the API servers and query endpoints of the platform with the token of a user. It has no
// credentials of its own, follows no redirect, and sends a token to the configured servers only.
//
// Each server has limits: the calls at a time, shared fairly between users; the time of a call and the size of an answer;
// and a breaker, which refuses calls for a while after several in a row got no answer.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/web/config"
)

const (
	// callsAtOnce is how many calls a server gets at a time.
	callsAtOnce = 8
	// readTime and writeTime limit a call, with the wait for its turn.
	readTime  = 2 * time.Second
	writeTime = 12 * time.Second
	// mostAnswer is how many bytes of an answer are read.
	mostAnswer = 16 << 20
	// mostElements bounds the maps, lists and values of an answer: a small one takes much more memory than it has bytes.
	mostElements = 400_000
	mostRefusal  = 1 << 20
	// hangs is how many calls in a row get no answer before the breaker opens, for breakTime.
	hangs     = 3
	breakTime = 10 * time.Second
	// mostWarnings and mostMessage bound what is shown of an answer.
	mostWarnings = 20
	mostMessage  = 4 << 10
)

// Target is one server.
type Target struct {
	// Name is what pages call it, such as "seed one".
	Name   string
	base   *url.URL
	client *http.Transport
	turns  turns.Turns
	now    func() time.Time
	count  func(server, outcome string)

	mutex  sync.Mutex
	failed int
	since  time.Time
	until  time.Time
}

// Options are what all servers share.
type Options struct {
	Now func() time.Time
	// Count counts calls by the name of the server and the outcome.
	Count func(server, outcome string)
}

// NewTarget makes a client of one server.
func NewTarget(name string, of config.Server, options Options) (*Target, error) {
	base, err := url.Parse(of.Server)
	if err != nil {
		return nil, err
	}
	pool, err := config.Pool(name, of.CA)
	if err != nil {
		return nil, err
	}
	return &Target{
		Name: name, base: base, turns: turns.Turns{Most: callsAtOnce}, now: options.Now, count: options.Count,
		client: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: readTime, MaxIdleConnsPerHost: callsAtOnce, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: false,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}, nil
}

// Close ends idle connections.
func (t *Target) Close() { t.client.CloseIdleConnections() }

// Request is one call.
type Request struct {
	// Method is GET by default.
	Method string
	// Path has its segments, which are escaped here.
	Path  []string
	Query url.Values
	// Body is sent as JSON; nil: none.
	Body any
	// Type of the body; default: application/json.
	Type string
	// Owner shares the turns; default: the user. All calls with unverified tokens share one owner.
	Owner string
}

// Answer is what a server answered with success.
type Answer struct {
	Status   int
	Body     []byte
	Warnings []string
}

// UnreachableError says that a server did not answer.
type UnreachableError struct {
	Name string
	// Since is when it answered no more; zero: just now.
	Since time.Time
	err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s does not answer: %v", e.Name, e.err)
}

func (e *UnreachableError) Unwrap() error { return e.err }

// RefusedError is an answer that is no success.
type RefusedError struct {
	Name   string
	Status int
	// Message is the server's own, cleaned.
	Message string
	// Causes are messages by field, where the server names fields.
	Causes []Cause
}

// Cause is a problem of one field.
type Cause struct{ Field, Message string }

func (e *RefusedError) Error() string {
	switch e.Status {
	case http.StatusUnauthorized:
		return e.Name + " does not accept your login"
	case http.StatusForbidden, http.StatusNotFound:
		return e.Name + ": " + e.Message
	}
	return e.Name + " refuses this: " + e.Message
}

// Is says whether an error is a refusal with this status.
func Is(err error, status int) bool {
	refused, isRefused := errors.AsType[*RefusedError](err)
	return isRefused && refused.Status == status
}

var (
	errBroken = errors.New("it did not answer the last calls, and is called again in a few seconds")
	errBusy   = errors.New("other calls to it take too long")
	errLarge  = fmt.Errorf("its answer has more than %d MiB, or more than %d values", mostAnswer>>20, mostElements)
)

// Call sends a request with the token of a user. Errors: *UnreachableError, *RefusedError.
func (t *Target) Call(ctx context.Context, token string, request Request) (*Answer, error) {
	limit := readTime
	if request.Method != "" && request.Method != http.MethodGet {
		limit = writeTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := t.call(ctx, token, request)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isRefused && refused.Status >= http.StatusInternalServerError:
		t.count(t.Name, "error")
	case isRefused:
		t.count(t.Name, "refused")
	case err != nil:
		t.count(t.Name, "unreachable")
	default:
		t.count(t.Name, "answered")
	}
	return answer, err
}

func (t *Target) call(ctx context.Context, token string, request Request) (*Answer, error) {
	if err := t.broken(); err != nil {
		return nil, err
	}
	end, err := t.turns.Take(ctx, cmp.Or(request.Owner, owner(token)))
	if err != nil {
		return nil, &UnreachableError{t.Name, time.Time{}, errBusy}
	}
	defer end()
	response, err := t.send(ctx, token, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err == nil {
		err = ctx.Err() // a server may end its answer as soon as it sees that the call is given up
	}
	if err != nil {
		return nil, t.hung(ctx, err)
	}
	t.answered()
	switch {
	case len(content) > mostAnswer:
		return nil, &UnreachableError{t.Name, time.Time{}, errLarge}
	case response.StatusCode/100 != 2:
		return nil, t.refused(response.StatusCode, content)
	}
	return &Answer{response.StatusCode, content, warnings(response.Header)}, nil
}

// send opens the answer to a request. Errors: *UnreachableError.
func (t *Target) send(ctx context.Context, token string, request Request) (*http.Response, error) {
	var body io.Reader
	if request.Body != nil {
		encoded, err := json.Marshal(request.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	at := *t.base
	escaped := make([]string, len(request.Path))
	for i, segment := range request.Path {
		if segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "/") {
			return nil, &RefusedError{t.Name, http.StatusNotFound, fmt.Sprintf("%q is not a valid name", segment), nil}
		}
		escaped[i] = url.PathEscape(segment)
	}
	at.RawPath = strings.TrimSuffix(t.base.EscapedPath(), "/") + "/" + strings.Join(escaped, "/")
	at.Path = strings.TrimSuffix(t.base.Path, "/") + "/" + strings.Join(request.Path, "/")
	at.RawQuery = request.Query.Encode()
	made, err := http.NewRequestWithContext(ctx, request.Method, at.String(), body)
	if err != nil {
		return nil, &UnreachableError{t.Name, time.Time{}, errors.New("the request can't be written")}
	}
	made.Header.Set("Authorization", "Bearer "+token)
	made.Header.Set("Accept", "application/json")
	made.Header.Set("User-Agent", "trellis-web")
	if body != nil {
		made.Header.Set("Content-Type", request.contentType())
	}
	response, err := t.client.RoundTrip(made) // follows no redirect
	if err != nil {
		return nil, t.hung(ctx, err)
	}
	return response, nil
}

func (r *Request) contentType() string {
	if r.Type != "" {
		return r.Type
	}
	return "application/json"
}

// owner identifies a user for fairness, without the token.
func owner(token string) string {
	sum := sha256.Sum256([]byte(token))
	return string(sum[:])
}

// broken is an error while the breaker is open.
func (t *Target) broken() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.now().Before(t.until) {
		return &UnreachableError{t.Name, t.since, errBroken}
	}
	return nil
}

func (t *Target) answered() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.failed, t.since, t.until = 0, time.Time{}, time.Time{}
}

// hung counts a call without an answer, unless the caller ended it.
func (t *Target) hung(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &UnreachableError{t.Name, time.Time{}, context.Canceled}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.failed++; t.failed == 1 {
		t.since = t.now()
	}
	if t.failed >= hangs {
		t.until = t.now().Add(breakTime)
	}
	return &UnreachableError{t.Name, t.since, errors.New(reason(err))}
}

// reason is a short text of a network's error, without addresses.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long"
	case strings.Contains(err.Error(), "certificate"):
		return "its certificate is not valid for the configured authority and address"
	}
	return "the connection failed"
}

// refused reads the Status of a refusal.
func (t *Target) refused(code int, content []byte) error {
	var status metav1.Status
	_ = json.Unmarshal(content[:min(len(content), mostRefusal)], &status) // a proxy's answer is none
	made := &RefusedError{Name: t.Name, Status: code, Message: text.Cut(text.Line(status.Message), mostMessage)}
	if made.Message == "" {
		made.Message = fmt.Sprintf("status %d %s", code, http.StatusText(code))
	}
	if status.Details != nil {
		for _, one := range status.Details.Causes[:min(len(status.Details.Causes), mostWarnings)] {
			made.Causes = append(made.Causes, Cause{one.Field, text.Cut(text.Line(one.Message), mostMessage)})
		}
	}
	return made
}

// warnings are the texts of Warning headers: `299 - "text"`.
func warnings(header http.Header) []string {
	var found []string
	for _, one := range header.Values("Warning") {
		_, quoted, isThere := strings.Cut(one, `"`)
		if end := strings.LastIndex(quoted, `"`); isThere && end >= 0 && len(found) < mostWarnings {
			found = append(found, text.Message(strings.ReplaceAll(quoted[:end], `\"`, `"`)))
		}
	}
	return slices.Compact(found)
}
