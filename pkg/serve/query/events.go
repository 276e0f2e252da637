package query

import (
	"net/http"
	"time"
)

// events writes server-sent events. After an error, which means that the reader is gone or stuck, it writes nothing more.
type events struct {
	writer     http.ResponseWriter
	controller *http.ResponseController
	err        error
}

// newEvents begins the answer. Its deadlines are those of events, not of a request.
func newEvents(writer http.ResponseWriter) *events {
	header := writer.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	made := &events{writer: writer, controller: http.NewResponseController(writer)}
	made.err = made.controller.SetReadDeadline(time.Time{})
	made.extend()
	writer.WriteHeader(http.StatusOK)
	return made
}

// extend begins the deadline for the events until the next flush.
func (e *events) extend() {
	if e.err == nil {
		e.err = e.controller.SetWriteDeadline(time.Now().Add(eventDeadline))
	}
}

// send writes an event, whose data is one line of JSON.
func (e *events) send(kind string, data any) {
	encoded, err := encode(data)
	if err != nil {
		e.err = err
	}
	e.write("event: " + kind + "\ndata: " + string(encoded) + "\n")
}

// beat writes a comment, which finds out whether the reader is there.
func (e *events) beat() {
	e.extend()
	e.write(":\n\n")
}

func (e *events) write(text string) {
	if e.err == nil {
		_, e.err = e.writer.Write([]byte(text))
	}
}

// flush sends what was written. It is false once the reader is gone.
func (e *events) flush() bool {
	if e.err == nil {
		e.err = e.controller.Flush()
	}
	return e.err == nil
}
