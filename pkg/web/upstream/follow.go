package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const (
	// mostLine is how many bytes a line of a stream has.
	mostLine = 1 << 20
	// mostWaiting is how many events wait for a page; a slower one reads its window again.
	mostWaiting = 200
	// retryTime is the time before a stream that ended is opened again.
	retryTime = 3 * time.Second
	// silence is how long a stream may send nothing: the endpoint sends a comment every ten seconds.
	silence = 40 * time.Second
)

// Event is a change of a row that the user may see.
type Event struct {
	// Seed is the name of the seed. Kind is Row, Gone, or Again: the page reads its window again.
	Seed string
	Kind string
	Row  view.Row
}

// Kinds of events. Ended says that the user may no longer follow.
const (
	EventRow   = "row"
	EventGone  = "gone"
	EventAgain = "again"
	EventEnded = "ended"
)

// follower shares one stream of a seed between all pages of a token.
type follower struct {
	query   *Target
	mutex   sync.Mutex
	streams map[string]*shared
}

// shared is the stream of one token, as long as a page follows it.
type shared struct {
	pages  map[chan Event]struct{}
	cancel context.CancelFunc
}

func newFollower(query *Target) *follower {
	return &follower{query: query, streams: map[string]*shared{}}
}

// Follow sends the changes of rows of a seed until the context ends.
func (s *Seed) Follow(ctx context.Context, token string) <-chan Event {
	return s.follow.join(ctx, s.Name, token)
}

func (f *follower) join(ctx context.Context, seed, token string) <-chan Event {
	key, page := owner(token), make(chan Event, mostWaiting)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	one := f.streams[key]
	if one == nil {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		one = &shared{map[chan Event]struct{}{}, cancel}
		f.streams[key] = one
		go f.run(own, seed, token, one)
	}
	one.pages[page] = struct{}{}
	context.AfterFunc(ctx, func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		delete(one.pages, page)
		if len(one.pages) == 0 {
			one.cancel()
			if f.streams[key] == one {
				delete(f.streams, key)
			}
		}
	})
	return page
}

// send gives an event to all pages of a stream. A page that has no space left gets Again in place of all that waits.
func (f *follower) send(to *shared, event Event) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for page := range to.pages {
		select {
		case page <- event:
		default:
			for len(page) > 0 {
				select {
				case <-page:
				default:
				}
			}
			page <- Event{Seed: event.Seed, Kind: EventAgain} // only send writes, so there is space
		}
	}
}

// run opens the stream again each time that it ends.
func (f *follower) run(ctx context.Context, seed, token string, to *shared) {
	for ctx.Err() == nil {
		isOver := f.read(ctx, seed, token, to)
		if isOver {
			f.send(to, Event{Seed: seed, Kind: EventEnded})
			f.mutex.Lock()
			defer f.mutex.Unlock()
			if key := owner(token); f.streams[key] == to {
				delete(f.streams, key)
			}
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryTime):
		}
	}
}

// read follows one stream of the endpoint. It is over if the endpoint refuses the token, or its user has no right to it.
func (f *follower) read(ctx context.Context, seed, token string, to *shared) (isOver bool) {
	if f.query.broken() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	response, err := f.query.send(ctx, token, Request{Path: []string{"api", "v1", "watch"}})
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	f.query.answered()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests
	}
	lines, kind := bufio.NewScanner(response.Body), ""
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		watchdog.Reset(silence)
		line := lines.Bytes()
		if name, isKind := bytes.CutPrefix(line, []byte("event: ")); isKind {
			kind = string(name)
		} else if data, isData := bytes.CutPrefix(line, []byte("data: ")); isData {
			if f.event(seed, kind, data, to) {
				return true
			}
		}
	}
	return false
}

// event passes an event on. It is true for one that ends the stream for good.
func (f *follower) event(seed, kind string, data []byte, to *shared) (isOver bool) {
	event := Event{Seed: seed}
	switch kind {
	case "row", "gone":
		event.Kind = kind
		if json.Unmarshal(data, &event.Row) != nil {
			return false
		}
	case "begin":
		event.Kind = EventAgain
	case "end":
		var end struct {
			Reason string `json:"reason"`
		}
		_ = json.Unmarshal(data, &end)
		return end.Reason == "Forbidden" || end.Reason == "Unauthenticated"
	default:
		return false
	}
	f.send(to, event)
	return false
}
