package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	// requestsPerHost bounds our concurrent requests to one host.
	requestsPerHost = 4
	// longestWait bounds a host's Retry-After.
	longestWait = 10 * time.Minute
	// After deafAfter failures in a row, requests fail at once for firstRest, doubling up to
	// lastRest.
	deafAfter = 3
	firstRest = 5 * time.Second
	lastRest  = time.Minute
	hostLimit = 1000
)

// hosts limits the load of Trellis on hosts, and of hosts on Trellis.
type hosts struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*host
}

type host struct {
	slots  chan struct{}
	users  int       // users that have a slot or wait for one
	deaf   int       // failures in a row to reach it
	closed time.Time // no requests before
	reason string
}

func newHosts() *hosts { return &hosts{now: time.Now, known: map[string]*host{}} }

// enter waits for a place among the requests to a URL's host. The caller returns it with leave.
func (h *hosts) enter(ctx context.Context, at *url.URL) (*visit, error) {
	name := strings.ToLower(at.Hostname()) + ":" + port(at)
	h.mu.Lock()
	found := h.host(name)
	found.users++
	h.mu.Unlock()
	made := &visit{hosts: h, host: found, at: at}
	if err := made.check(); err != nil {
		made.done()
		return nil, err
	}
	select {
	case found.slots <- struct{}{}:
	case <-ctx.Done():
		made.done()
		return nil, unavailable(at, context.Cause(ctx))
	}
	if err := made.check(); err != nil { // it may have been closed in the meantime
		made.leave()
		return nil, err
	}
	return made, nil
}

func (h *hosts) host(name string) *host {
	if found, ok := h.known[name]; ok {
		return found
	}
	for old, host := range h.known {
		if len(h.known) < hostLimit {
			break
		}
		if host.users == 0 && !host.closed.After(h.now()) {
			delete(h.known, old)
		}
	}
	h.known[name] = &host{slots: make(chan struct{}, requestsPerHost)}
	return h.known[name]
}

// visit is a place among the requests to a host.
type visit struct {
	hosts *hosts
	host  *host
	at    *url.URL
	once  sync.Once
}

// leave returns the place. It may be called more than once.
func (v *visit) leave() {
	v.once.Do(func() {
		<-v.host.slots
		v.done()
	})
}

func (v *visit) done() {
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	v.host.users--
}

func (v *visit) check() error {
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	rest := v.host.closed.Sub(v.hosts.now())
	if rest <= 0 {
		return nil
	}
	return &fetch.UnavailableError{Subject: Shown(v.at), Err: errors.New(v.host.reason), RetryAfter: rest}
}

// failed records a failure to reach the host. It ignores errors of Trellis itself, certificates that only some
// references distrust, and the end of the operation's time, which another host may have used up.
func (v *visit) failed(ctx context.Context, err error) {
	if ctx.Err() != nil || !isDeaf(err) {
		return
	}
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	if v.host.deaf++; v.host.deaf < deafAfter {
		return
	}
	v.host.closed = v.hosts.now().Add(backoff.After(v.host.deaf-deafAfter+1, firstRest, lastRest))
	v.host.reason = fmt.Sprintf("it could not be reached %d times in a row, so requests to it pause for a while", v.host.deaf)
}

// isDeaf reports whether a host does not answer, in contrast to a wrong answer.
func isDeaf(err error) bool {
	var refusal *fetch.RefusedError
	if errors.Is(err, context.Canceled) || errors.As(err, &refusal) {
		return false
	}
	var silent *silentError
	var dial *net.OpError
	var timeout net.Error
	return errors.As(err, &silent) || errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &timeout) && timeout.Timeout()
}

// answered records that the host answers, and its Retry-After.
func (v *visit) answered(response *http.Response) error {
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	v.host.deaf = 0
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	wait := retryAfter(response.Header.Get("Retry-After"), v.hosts.now())
	if wait <= 0 {
		return nil
	}
	v.host.closed = v.hosts.now().Add(wait)
	v.host.reason = fmt.Sprintf("the server answers with status %d and requests a pause", response.StatusCode)
	return &fetch.UnavailableError{Subject: Shown(v.at), Err: errors.New(v.host.reason), RetryAfter: wait}
}

// retryAfter reads seconds or a date (RFC 9110, 10.2.3), up to longestWait.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(longestWait/time.Second) {
			return longestWait
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), longestWait))
}

// silentError reports that a deadline of this package passed.
type silentError struct{ text string }

func (e *silentError) Error() string { return e.text }
