package tracing

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// sendEvery is how long a span waits for others.
	sendEvery = 5 * time.Second
	// lastSend is how long the end of the process waits.
	lastSend = 2 * time.Second
	// DefaultTimeout is for one message, from dialling to the end of the answer.
	DefaultTimeout = 10 * time.Second
	// tries of one message, before it makes space for others.
	tries = 4
	// firstPause follows a failure, and doubles up to lastPause; a Retry-After counts up to that.
	firstPause = 5 * time.Second
	lastPause  = time.Minute
	// answerLimit is more than any answer needs.
	answerLimit = 16 << 10
	// logEvery is how often a collector's problems are logged.
	logEvery = 10 * time.Minute
)

// NewClient makes a client for one collector. It follows no redirect, uses no proxy, and reads no more of an answer
// than it needs.
func NewClient(security *tls.Config, timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, TLSClientConfig: security, TLSHandshakeTimeout: timeout, MaxResponseHeaderBytes: answerLimit,
			MaxConnsPerHost: 1, MaxIdleConns: 1, IdleConnTimeout: time.Minute, DisableCompression: true,
			ForceAttemptHTTP2: true,
		},
	}
}

// sender sends chunks of a queue, one after the other. One goroutine uses it.
type sender struct {
	options Options
	queue   *queue
	head    head

	// tried counts tries of the first chunk; pause follows the next failure.
	tried int
	pause time.Duration
	// troubled says that sending failed since the last log line, which was at loggedAt.
	troubled bool
	loggedAt time.Time
}

// send sends waiting spans, until there is no whole chunk or the process ends. Meanwhile spans gather in the current chunk: if that
// were closed each time, a busy process would send span by span. After a failure that may pass it returns how long to wait.
func (s *sender) send(ctx context.Context, ending <-chan struct{}) (wait time.Duration) {
	for first, ok := s.queue.next(); ok && !isClosed(ending); first, ok = s.queue.whole() {
		err := s.post(ctx, first)
		s.report(err)
		later, mayPass := errors.AsType[*laterError](err)
		if !mayPass {
			s.pause = 0
			s.finish(first, err)
			continue
		}
		if s.tried++; s.tried == tries {
			s.finish(first, err)
		}
		s.pause = min(max(2*s.pause, firstPause), lastPause)
		return max(s.pause, later.after)
	}
	return 0
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// sendLast sends waiting spans once, until a send fails.
func (s *sender) sendLast(ctx context.Context) {
	for {
		first, ok := s.queue.next()
		if !ok {
			break
		}
		err := s.post(ctx, first)
		s.report(err)
		s.finish(first, err)
		if err != nil {
			break
		}
	}
	for first, ok := s.queue.next(); ok; first, ok = s.queue.next() {
		s.finish(first, errors.New("there is no time left"))
	}
	s.options.Client.CloseIdleConnections()
}

// finish removes a chunk that was sent, or never will be.
func (s *sender) finish(first chunk, err error) {
	if err != nil {
		s.options.Metrics.failed.Add(float64(first.spans))
	} else {
		s.options.Metrics.sent.Add(float64(first.spans))
	}
	s.tried = 0
	s.queue.done()
}

// laterError says that a message may be sent again.
type laterError struct {
	after time.Duration
	err   error
}

func (e *laterError) Error() string { return e.err.Error() }

func (e *laterError) Unwrap() error { return e.err }

// post sends a chunk. Errors have no text of an answer.
func (s *sender) post(ctx context.Context, chunk chunk) error {
	message := bytes.NewReader(s.head.message(chunk.bytes))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.options.Endpoint.String(), message)
	if err != nil {
		return fmt.Errorf("creating the request: %w", err)
	}
	maps.Copy(request.Header, s.options.Header)
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "trellis/"+s.options.Version)
	answer, err := s.options.Client.Do(request)
	if err != nil {
		return &laterError{err: known(err)}
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit+1))
	switch {
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode/100 == 5:
		return &laterError{after: retryAfter(answer.Header), err: statusError(answer.StatusCode)}
	case answer.StatusCode/100 != 2:
		return statusError(answer.StatusCode)
	case err != nil, len(read) > answerLimit: // the collector has the spans: an unexpected answer changes nothing
		return nil
	}
	refused := min(rejected(read), int64(chunk.spans))
	s.options.Metrics.refused.Add(float64(refused))
	return nil
}

var errNoAnswer = errors.New("the collector's answer can't be read")

// known is an error without text that a collector may have written, and without the URL: its path may have a token.
func known(err error) error {
	var network net.Error
	var certificate *tls.CertificateVerificationError
	var outer *url.Error
	if errors.As(err, &outer) && (errors.As(outer.Err, &network) || errors.As(outer.Err, &certificate)) {
		return outer.Err
	}
	return errNoAnswer
}

func statusError(code int) error { return fmt.Errorf("the collector answers with status %d", code) }

// retryAfter reads seconds; dates are ignored.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(lastPause/time.Second))) * time.Second
}

// report logs the first problem, then one in ten minutes, and its end.
func (s *sender) report(err error) {
	log := s.options.Log.WithValues("host", s.options.Endpoint.Host)
	switch {
	case err == nil && s.troubled:
		log.Info("traces are accepted again")
		s.troubled = false
	case err != nil && time.Since(s.loggedAt) >= logEvery:
		log.Error(err, "traces can't be sent: spans that exceed the queue are dropped")
		s.troubled, s.loggedAt = true, time.Now()
	}
}
