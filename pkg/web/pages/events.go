package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

const (
	// beatTime is the time between comments, by which a gone browser is noticed. writeLimit is how long a write may take.
	beatTime   = 15 * time.Second
	writeLimit = 10 * time.Second
	// againTime is the least time between two events that have a page read its window again.
	againTime = time.Second
	// mostStreams is how many are open, mostStreamsOfUser how many of one token.
	mostStreams       = 512
	mostStreamsOfUser = 64
)

// events streams the changes of the rows of a page: event "row" has the row's HTML, "again" has the page read its window again.
func (s *Site) events(writer http.ResponseWriter, request *http.Request) {
	session := s.login.Session(writer, request)
	if session == nil {
		http.Error(writer, "log in", http.StatusUnauthorized)
		return
	}
	end, problem := s.Streams.take(session.Token)
	if problem != "" {
		http.Error(writer, problem, http.StatusTooManyRequests)
		return
	}
	defer end()
	s.Metrics.streams.Inc()
	defer s.Metrics.streams.Dec()
	asked := filtersOf(request.URL.Query())
	if err := s.mayFollow(request.Context(), session.Token, asked); err != nil {
		http.Error(writer, problemOf(err).Text, http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithDeadline(request.Context(), session.Until)
	defer cancel()
	out := &stream{writer, http.NewResponseController(writer), s, asked, request.URL.Query().Get("name")}
	all := make(chan upstream.Event)
	for _, seed := range s.platform.Seeds {
		if asked.Seed == "" || asked.Seed == seed.Name {
			go forward(ctx, seed.Follow(ctx, session.Token), all)
		}
	}
	out.follow(ctx, all)
}

// mayFollow says why a user can't follow what a page asks for. A seed that does not answer may answer later.
func (s *Site) mayFollow(ctx context.Context, token string, asked filters) error {
	seeds, err := s.seedsOf(asked.Seed)
	if err != nil || asked.Seed == "" || asked.Namespace == "" {
		return err
	}
	err = seeds[0].Ask(ctx, token, url.Values{"namespace": {asked.Namespace}, "limit": {"1"}}, &upstream.Installations{}, "installations")
	if isHidden(err) || upstream.Is(err, http.StatusUnauthorized) {
		return err
	}
	return nil
}

// Streams counts the open streams of all sites, and those of each token. The zero value has none.
type Streams struct {
	mutex sync.Mutex
	all   int
	of    map[string]int
}

// take opens a stream until end is called, or says why there can't be one more.
func (o *Streams) take(token string) (end func(), problem string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	owner := sha256.Sum256([]byte(token))
	key := string(owner[:])
	switch {
	case o.all >= mostStreams:
		return nil, "too many streams are open"
	case o.of[key] >= mostStreamsOfUser:
		return nil, "you have too many pages open"
	case o.of == nil:
		o.of = map[string]int{}
	}
	o.all++
	o.of[key]++
	return func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.all--
		if o.of[key]--; o.of[key] == 0 {
			delete(o.of, key)
		}
	}, ""
}

// forward passes events of one seed on until the context ends.
func forward(ctx context.Context, from <-chan upstream.Event, to chan<- upstream.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-from:
			select {
			case <-ctx.Done():
				return
			case to <- one:
			}
		}
	}
}

// stream writes the events of one page.
type stream struct {
	writer     http.ResponseWriter
	controller *http.ResponseController
	site       *Site
	asked      filters
	// name is that of the installation that the page is about; "" for lists.
	name string
}

// follow writes events until the browser is gone, the login ends, or the program does.
func (o *stream) follow(ctx context.Context, all <-chan upstream.Event) {
	header := o.writer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	_ = o.controller.SetReadDeadline(time.Time{})
	o.writer.WriteHeader(http.StatusOK)
	if !o.send(":\n\n") {
		return
	}
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	pending, again := false, time.NewTicker(againTime)
	defer again.Stop()
	for {
		text := ""
		select {
		case <-o.site.Ending:
			return
		case <-o.site.closed:
			return
		case <-ctx.Done():
			return
		case <-beat.C:
			text = ":\n\n"
		case <-again.C:
			if pending {
				text, pending = frame("again", ""), false
			}
		case one := <-all:
			if one.Kind == upstream.EventEnded && o.asked.Seed != "" {
				o.send(frame("ended", ""))
				return
			}
			var isAgain bool
			text, isAgain = o.shown(one)
			pending = pending || isAgain
		}
		if text != "" && !o.send(text) {
			return
		}
	}
}

// shown is what a page gets of an event: the HTML of a row, or that it reads its window again; neither for rows that it does not show.
func (o *stream) shown(of upstream.Event) (text string, isAgain bool) {
	switch {
	case of.Kind == upstream.EventEnded: // the user has no rights on this seed
	case of.Kind == upstream.EventAgain:
		return "", true
	case !o.selects(of.Row):
	case o.name != "":
		return "", true
	default:
		return o.row(of), false
	}
	return "", false
}

// selects says whether the page shows a row. A row that is gone has a namespace and a name only.
func (o *stream) selects(one view.Row) bool {
	return (o.asked.Namespace == "" || one.Namespace == o.asked.Namespace) && (o.name == "" || one.Name == o.name) &&
		(o.asked.Cluster == "" || one.Cluster == "" || one.Cluster == o.asked.Cluster)
}

// row is an event with the HTML of a row, which replaces the row of the same id.
func (o *stream) row(of upstream.Event) string {
	var out bytes.Buffer
	data := map[string]any{"Seed": of.Seed, "Row": of.Row, "IsGone": of.Kind == upstream.EventGone, "IsChange": true}
	if o.site.views.pages["installations"].ExecuteTemplate(&out, "row", data) != nil {
		return ""
	}
	return frame("row", "<template>"+strings.TrimSpace(out.String())+"</template>")
}

// frame is an event whose data may have several lines.
func frame(kind, data string) string {
	return "event: " + kind + "\ndata: " + strings.ReplaceAll(strings.ReplaceAll(data, "\r", ""), "\n", "\ndata: ") + "\n\n"
}

func (o *stream) send(text string) bool {
	_ = o.controller.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := o.writer.Write([]byte(text))
	return err == nil && o.controller.Flush() == nil
}
