package pages

import (
	"bytes"
	"context"
	"net/http"
	"strings"
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
)

// events streams the changes of the rows of a page: event "row" has the row's HTML, "again" has the page read its window again.
func (s *Site) events(writer http.ResponseWriter, request *http.Request) {
	session := s.login.Session(writer, request)
	if session == nil {
		http.Error(writer, "log in", http.StatusUnauthorized)
		return
	}
	select {
	case s.Streams <- struct{}{}:
		defer func() { <-s.Streams }()
	default:
		http.Error(writer, "too many streams are open", http.StatusServiceUnavailable)
		return
	}
	s.Metrics.streams.Inc()
	defer s.Metrics.streams.Dec()
	asked := filtersOf(request.URL.Query())
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
