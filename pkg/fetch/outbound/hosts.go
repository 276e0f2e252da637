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

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	// requestsPerHost is how many requests one host has from us at a time, from the first byte to the last one.
	requestsPerHost = 4
	// longestWait is the most that a host's Retry-After counts for, whatever it says.
	longestWait = 10 * time.Minute
	// deafAfter is how many times in a row a host may be out of reach before it is left alone for a while: from firstRest on,
	// doubling, up to lastRest. Meanwhile requests to it fail at once and take nobody's place.
	deafAfter = 3
	firstRest = 5 * time.Second
	lastRest  = time.Minute
	// hostsKept is how many hosts are remembered before idle ones are forgotten.
	hostsKept = 1000
)

// hosts keeps us from being a burden to others, and them from being one to us.
type hosts struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*host
}

type host struct {
	slots  chan struct{}
	users  int       // that have a slot or wait for one
	deaf   int       // failures to reach it, in a row
	closed time.Time // nobody asks before
	reason string
}

func newHosts() *hosts { return &hosts{now: time.Now, known: map[string]*host{}} }

// enter waits for a place among the requests to the host of a URL. The caller gives it back by leave, once.
func (h *hosts) enter(ctx context.Context, at *url.URL) (*visit, error) {
	name := strings.ToLower(at.Hostname()) + ":" + port(at)
	h.mu.Lock()
	found := h.host(name)
	found.users++
	h.mu.Unlock()
	made := &visit{hosts: h, host: found, at: at}
	if err := made.check(); err != nil {
		made.gone()
		return nil, err
	}
	select {
	case found.slots <- struct{}{}:
	case <-ctx.Done():
		made.gone()
		return nil, unavailable(at, context.Cause(ctx))
	}
	if err := made.check(); err != nil { // it may have been closed while we waited
		made.leave()
		return nil, err
	}
	return made, nil
}

// host finds or makes what is known of one. The lock is held.
func (h *hosts) host(name string) *host {
	if found, ok := h.known[name]; ok {
		return found
	}
	for old, host := range h.known {
		if len(h.known) < hostsKept {
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

// leave gives the place back. It may be called more than once.
func (v *visit) leave() {
	v.once.Do(func() {
		<-v.host.slots
		v.gone()
	})
}

func (v *visit) gone() {
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	v.host.users--
}

// check says whether the host is left alone for now.
func (v *visit) check() error {
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	left := v.host.closed.Sub(v.hosts.now())
	if left <= 0 {
		return nil
	}
	return &fetch.UnavailableError{Subject: Shown(v.at), Err: errors.New(v.host.reason), RetryAfter: left}
}

// failed notes that the host could not be reached. What came from our side, or from a certificate that only some
// references distrust, says nothing of the host.
func (v *visit) failed(err error) {
	if !isDeaf(err) {
		return
	}
	v.hosts.mu.Lock()
	defer v.hosts.mu.Unlock()
	if v.host.deaf++; v.host.deaf < deafAfter {
		return
	}
	v.host.closed = v.hosts.now().Add(backoff.After(v.host.deaf-deafAfter+1, firstRest, lastRest))
	v.host.reason = fmt.Sprintf("it could not be reached %d times in a row and is left alone for a while", v.host.deaf)
}

// isDeaf tells a host that does not answer from one that answers wrongly.
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

// answered notes that the host is there, and does as it asks.
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
	v.host.reason = fmt.Sprintf("the server answers with status %d and asks to be left alone for a while", response.StatusCode)
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

// silentError is a deadline of ours.
type silentError struct{ text string }

func (e *silentError) Error() string { return e.text }
