package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Dose is the amount of a mode.
type Dose struct {
	// Size counts the unit that the mode enlarges: bytes, items or levels.
	Size int
	// Wait is the duration of an answer if the mode is slow.
	Wait time.Duration
}

// asked is the subject of a request.
type asked int

const (
	forOther asked = iota
	forDiscovery
	forVersion
	forList
	forObject
	forWrite
)

// askedFor distinguishes requests by method and path.
func askedFor(r *http.Request) asked {
	switch path := strings.Trim(r.URL.Path, "/"); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return forWrite
	case path == "version":
		return forVersion
	case path == "api" || path == "apis":
		return forDiscovery
	default:
		return askedForResource(strings.Split(path, "/"))
	}
}

func askedForResource(parts []string) asked {
	prefix := map[string]int{"api": 2, "apis": 3}[parts[0]]
	switch {
	case prefix == 0 || len(parts) < prefix:
		return forOther
	case len(parts) == prefix:
		return forDiscovery
	}
	inner := parts[prefix:]
	if inner[0] == "namespaces" && len(inner) > 2 {
		inner = inner[2:]
	}
	if len(inner) == 1 {
		return forList
	}
	return forObject
}

// exchange is one request and its answer.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	dose   Dose
	asked  asked
}

// pause waits, or until the client is gone; it reports whether the client is still there.
func (x *exchange) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// json answers with the output of write.
func (x *exchange) json(code int, write func(io.Writer)) bool {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(code)
	write(stopping{x.r.Context(), x.w})
	return true
}

// text answers with a JSON text.
func (x *exchange) text(code int, format string, values ...any) bool {
	return x.json(code, func(w io.Writer) { fmt.Fprintf(w, format, values...) })
}

// drip sends one byte a second, all white space, before a good answer, and ends with the answer after the dose's
// time.
func (x *exchange) drip(answer string) bool {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(http.StatusOK)
	for end := time.Now().Add(x.dose.Wait); time.Now().Before(end); {
		if _, err := io.WriteString(x.w, " "); err != nil {
			return true
		}
		_ = http.NewResponseController(x.w).Flush()
		if !x.pause(min(time.Second, x.dose.Wait)) {
			return true
		}
	}
	_, _ = io.WriteString(x.w, answer)
	return true
}

// stopping ends a flood once the client is gone.
type stopping struct {
	ctx context.Context
	to  io.Writer
}

func (s stopping) Write(text []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	return s.to.Write(text)
}

// repeat writes a text until so many bytes are written, or the client is gone.
func repeat(w io.Writer, text string, size int) {
	block := bytes.Repeat([]byte(text), max(1, (64<<10)/len(text)))
	for left := size; left > 0; left -= len(block) {
		if _, err := w.Write(block[:min(len(block), (left+len(text)-1)/len(text)*len(text))]); err != nil {
			return
		}
	}
}

// enumerate writes so many parts with commas between them, or until the client is gone.
func enumerate(w io.Writer, count int, part func(i int) string) {
	var block bytes.Buffer
	for i := range count {
		if i > 0 {
			block.WriteByte(',')
		}
		block.WriteString(part(i))
		if block.Len() < 64<<10 && i < count-1 {
			continue
		}
		if _, err := w.Write(block.Bytes()); err != nil {
			return
		}
		block.Reset()
	}
}

// about answers all requests about one of the named subjects in one way.
func about(do func(*exchange) bool, what ...asked) func(*exchange) bool {
	return func(x *exchange) bool { return slices.Contains(what, x.asked) && do(x) }
}
