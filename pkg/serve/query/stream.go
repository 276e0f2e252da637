package query

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// streamChecks is the time between two reviews of a stream's rights; each is also a heartbeat. Where the rights come from RoleBindings,
	// only each checksOfBindings-th check reviews them, and each one after a check that failed.
	streamChecks     = 10 * time.Second
	checksOfBindings = 5
	// mostUnchecked is how many checks in a row may fail because the API server can't be asked.
	mostUnchecked = 5
	// mostChanged is how many changed rows wait for a reader. eventsAtOnce are written together, which may take eventDeadline: a slow
	// reader does not delay the reviews of its rights for longer.
	mostChanged   = 2000
	eventsAtOnce  = 50
	eventDeadline = 10 * time.Second
)

// Reasons why a stream ends.
const (
	endSlow            = "Slow"            // the reader is slower than the changes
	endUnauthenticated = "Unauthenticated" // the token is no longer valid
	endForbidden       = "Forbidden"       // the caller may no longer list these installations
	endChanged         = "Changed"         // the caller may list installations of other namespaces than before
	endUnavailable     = "Unavailable"     // rights can't be reviewed
	endShutdown        = "Shutdown"        // this replica ends
)

// stream sends the changes of rows to one reader. It keeps the keys of changed rows, not their versions.
type stream struct {
	asked *rowQuery
	seen  scope

	mutex   sync.Mutex
	changed map[client.ObjectKey]struct{}
	isSlow  bool
	wake    chan struct{}
}

func newStream(asked *rowQuery, seen scope) *stream {
	return &stream{asked: asked, seen: seen, changed: map[client.ObjectKey]struct{}{}, wake: make(chan struct{}, 1)}
}

// offer notes a change of a row that is selected before or after it.
func (s *stream) offer(before, after *row) {
	one := cmp.Or(after, before)
	if !s.seen.has(one.Namespace) || !s.asked.admitsWithState(before) && !s.asked.admitsWithState(after) {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := client.ObjectKey{Namespace: one.Namespace, Name: one.Name}
	if _, waits := s.changed[key]; !waits && len(s.changed) >= mostChanged {
		s.isSlow = true
	} else {
		s.changed[key] = struct{}{}
	}
	s.wakeUp()
}

func (s *stream) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns the keys of some changed rows, and whether the reader is too slow. If there are more, it wakes the stream again.
func (s *stream) take() (keys []client.ObjectKey, isSlow bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for key := range s.changed {
		if len(keys) == eventsAtOnce {
			s.wakeUp()
			break
		}
		keys = append(keys, key)
		delete(s.changed, key)
	}
	return keys, s.isSlow
}

// watch streams the changes of the rows that a list with the same parameters has.
func (s *Server) watch(ctx context.Context, of *call) (*content, error) {
	seen, err := s.scope(ctx, of.identity, of.given.rows.namespace)
	if err != nil {
		return nil, err
	}
	end, err := s.turns.take(ctx, streaming, of.identity.owner())
	if err != nil {
		return nil, err
	}
	if of.request.Method == http.MethodHead {
		end()
		end = func() {}
	}
	made := newStream(&of.given.rows, seen)
	return &content{stream: func(writer http.ResponseWriter, request *http.Request) int {
		defer end()
		s.options.Metrics.streaming(1)
		defer s.options.Metrics.streaming(-1)
		s.Rows.join(made)
		defer s.Rows.leave(made)
		out := newEvents(writer)
		if reason := s.follow(request.Context(), of, made, out); reason != "" {
			out.extend()
			out.send("end", map[string]string{"reason": reason})
			out.flush()
		}
		return http.StatusOK
	}}, nil
}

// follow sends changes until the reader is gone (""), or for another reason.
func (s *Server) follow(ctx context.Context, of *call, to *stream, out *events) (reason string) {
	out.send("begin", map[string]bool{"truncated": to.seen.truncated})
	ticker := time.NewTicker(s.checks)
	defer ticker.Stop()
	rights := check{server: s, of: of, seen: &to.seen}
	for out.flush() {
		select {
		case <-ctx.Done():
			return ""
		case <-s.ending:
			return endShutdown
		case <-to.wake:
			keys, isSlow := to.take()
			if isSlow {
				return endSlow
			}
			out.extend()
			for _, key := range keys {
				s.sendRow(to, out, key)
			}
		case <-ticker.C:
			if reason := rights.again(ctx); reason != "" {
				return reason
			}
			out.beat()
		}
	}
	return ""
}

func (s *Server) sendRow(to *stream, out *events, key client.ObjectKey) {
	if one := s.Rows.get(key); to.asked.admitsWithState(one) {
		out.send("row", one.shown())
		return
	}
	out.send("gone", map[string]string{"namespace": key.Namespace, "name": key.Name})
}

// check reviews the rights of a stream again.
type check struct {
	server *Server
	of     *call
	seen   *scope
	// number counts checks, and unchecked those that failed since the last that did not.
	number, unchecked int
}

// again is the reason to end the stream, or "".
func (c *check) again(ctx context.Context) string {
	c.number++
	identity, err := c.server.identify(ctx, c.of.request)
	isByBindings := !c.seen.all && c.of.given.rows.namespace == ""
	if err == nil && (!isByBindings || c.unchecked > 0 || c.number%checksOfBindings == 0) {
		var now scope
		if now, err = c.server.scope(ctx, identity, c.of.given.rows.namespace); err == nil && !now.equal(*c.seen) {
			return endChanged
		}
	}
	var unknown *UnauthenticatedError
	var denied *NotFoundError
	switch {
	case err == nil:
		c.unchecked = 0
		return ""
	case errors.As(err, &unknown):
		return endUnauthenticated
	case errors.As(err, &denied):
		return endForbidden
	}
	if c.unchecked++; c.unchecked < mostUnchecked {
		return ""
	}
	return endUnavailable
}
