package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// challenge is header WWW-Authenticate of a refusal.
const challenge = `Bearer realm="trellis"`

func (s *Server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	began := s.options.Clock.Now()
	name, status := "none", http.StatusInternalServerError
	defer func() {
		if problem := recover(); problem != nil {
			s.options.Logger.Error(errPanic, "a request caused a panic of the endpoint", "route", name, "stack", string(debug.Stack()))
			status = refuse(writer, &internalError{})
		}
		s.options.Metrics.requested(name, status, s.options.Clock.Since(began))
	}()
	route, parts, err := find(request.Method, request.URL.Path)
	if route != nil {
		name = route.path
	}
	if err != nil {
		status = refuse(writer, err)
		return
	}
	of := &call{request: request, path: parts}
	defer of.done()
	found, err := s.reply(request.Context(), route, of)
	if err != nil {
		status = s.refuse(writer, err)
		return
	}
	if found.stream != nil && request.Method != http.MethodHead {
		status = found.stream(writer, request)
		return
	}
	status = write(writer, request, found)
}

var errPanic = errors.New("panic")

func (s *Server) reply(ctx context.Context, route *route, of *call) (_ *content, err error) {
	if !route.open {
		if of.identity, err = s.identify(ctx, of.request); err != nil {
			return nil, err
		}
	}
	if route.method == http.MethodPost {
		of.request.Body = http.MaxBytesReader(nil, of.request.Body, cmp.Or(route.mostBody, mostBody))
	} else if of.request.ContentLength != 0 {
		return nil, &ParameterError{"body", "this request must not have a body"}
	}
	if of.given, err = s.asked.read(of.request.URL.RawQuery, route); err != nil {
		return nil, err
	}
	if route.isOwn {
		if of.end, err = s.turns.take(ctx, answering, of.identity.owner()); err != nil {
			return nil, err
		}
	}
	return route.answer(s, ctx, of)
}

// refuse logs errors that the caller must not read.
func (s *Server) refuse(writer http.ResponseWriter, err error) int {
	refusal, foreseen := refusalOf(err)
	unavailable, isUnavailable := errors.AsType[*UnavailableError](err)
	switch {
	case !foreseen:
		s.options.Logger.Error(err, "a request could not be answered")
	case isUnavailable && s.mayLog():
		s.options.Logger.Error(unavailable.err, "requests can't be answered now", "problem", unavailable.Problem)
	}
	return refuse(writer, refusal)
}

// mayLog allows one line per second, since callers cause these logs.
func (s *Server) mayLog() bool {
	now := s.options.Clock.Now().Unix()
	before := s.logged.Load()
	return now != before && s.logged.CompareAndSwap(before, now)
}

// refuse sends a refusal as a metav1.Status, so that kubectl and other clients show its message.
func refuse(writer http.ResponseWriter, err error) int {
	refusal, _ := refusalOf(err)
	header := writer.Header()
	switch refusal := refusal.(type) {
	case *UnauthenticatedError:
		header.Set("WWW-Authenticate", challenge)
	case *MethodError:
		header.Set("Allow", strings.Join(refusal.Allowed, ", "))
	case *UnavailableError:
		header.Set("Retry-After", "1")
	}
	code, reason := refusal.code()
	encoded, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: refusal.Error(),
	})
	if err != nil {
		encoded = []byte("{}") // texts can always be encoded
	}
	plainHeaders(header)
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(encoded)))
	writer.WriteHeader(code)
	_, _ = writer.Write(encoded) // the caller may have closed the connection
	return code
}

// Shared values of headers; they never change.
var (
	valueJSON    = []string{"application/json"}
	valueNoSniff = []string{"nosniff"}
	valueGzip    = []string{"gzip"}
	valueVary    = []string{"Accept-Encoding, Authorization"}
	// Callers may cache an answer but have to validate it each time: rights and catalogue change.
	valueCache = []string{"private, no-cache"}
)

func plainHeaders(header http.Header) {
	header["Content-Type"], header["X-Content-Type-Options"] = valueJSON, valueNoSniff
}

// write sends a content with gzip if the caller accepts it, or 304 if the caller has it.
func write(writer http.ResponseWriter, request *http.Request, found *content) int {
	header := writer.Header()
	header["Vary"], header["Cache-Control"] = valueVary, valueCache
	sent := &found.plain
	if found.packed.body != nil && acceptsGzip(request.Header) {
		sent = &found.packed
	}
	if sent.etag != nil {
		header["Etag"] = sent.etag
		if has(request.Header, found) {
			writer.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	}
	plainHeaders(header)
	if sent == &found.packed {
		header["Content-Encoding"] = valueGzip
	}
	header["Content-Length"] = sent.length
	status := http.StatusOK
	if found.retryAfter > 0 {
		status = http.StatusAccepted
		header.Set("Retry-After", strconv.Itoa(found.retryAfter))
	}
	writer.WriteHeader(status)
	if request.Method != http.MethodHead {
		_, _ = writer.Write(sent.body) // the caller may have closed the connection
	}
	return status
}

// has says whether the caller has a form of the content. Only GET and HEAD have conditions.
func has(header http.Header, found *content) bool {
	for _, line := range header["If-None-Match"] {
		for known := range strings.SplitSeq(line, ",") {
			known = strings.TrimPrefix(strings.TrimSpace(known), "W/")
			if known == "*" || slices.Contains(found.plain.etag, known) || slices.Contains(found.packed.etag, known) {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reads Accept-Encoding: gzip counts unless its weight is zero.
func acceptsGzip(header http.Header) bool {
	for _, line := range header["Accept-Encoding"] {
		for offer := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(offer, ";")
			if coding = strings.TrimSpace(coding); !strings.EqualFold(coding, "gzip") && coding != "*" {
				continue
			}
			key, value, _ := strings.Cut(strings.TrimSpace(weight), "=")
			if parsed, err := strconv.ParseFloat(strings.TrimSpace(value), 64); !strings.EqualFold(key, "q") || err != nil || parsed > 0 {
				return true
			}
		}
	}
	return false
}
