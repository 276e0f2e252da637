package standins

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/gate"
)

// Write is one request of a set controller that changes something, when it came by the gate.
type Write struct {
	At time.Time
	gate.Call
	// Cluster and Installation that are written; "" for anything else.
	Cluster, Installation string
	// Set is that whose copy is written, or whose status is.
	Set      string
	IsStatus bool
	// Digest and Moved are the annotations of an installation that is applied; zero for any other write.
	Digest string
	Moved  time.Time
	// Code of HTTP that the controller got; 0: it got no answer, or not yet.
	Code int
}

// Log keeps the writes that come by a gate, of all processes that it watches.
type Log struct {
	mutex  sync.Mutex
	writes []Write
	// numbers are the places of writes by the number of their call.
	numbers map[int64]int
	moves   *Moves
}

// NewLog makes a Log, which tells Moves too; nil is none.
func NewLog(moves *Moves) *Log { return &Log{moves: moves, numbers: map[int64]int{}} }

// Guard is what a gate is to watch a client with. Further guards are asked first: what they don't let pass was not written.
func (l *Log) Guard(further gate.Guard) gate.Guard {
	return gate.Guard{
		Before: func(call gate.Call) bool {
			if further.Before != nil && !further.Before(call) {
				return false
			}
			if call.Writes() {
				l.add(writeOf(call), time.Now)
			}
			return true
		},
		After: further.After,
		Answered: func(call gate.Call, code int) {
			l.answered(call, code)
			if further.Answered != nil {
				further.Answered(call, code)
			}
		},
	}
}

// add a write, at the time of its place in the log: judged at an earlier one, it would meet clusters that were written after it.
func (l *Log) add(write Write, now func() time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	write.Body, write.At = nil, now()
	l.numbers[write.Number] = len(l.writes)
	l.writes = append(l.writes, write)
	if write.Installation != "" && l.moves != nil {
		l.moves.wrote(write)
	}
}

func (l *Log) answered(call gate.Call, code int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if place, known := l.numbers[call.Number]; known {
		l.writes[place].Code = code
		delete(l.numbers, call.Number)
	}
}

// writeOf reads the path of a call: /apis/<group>/<version>/namespaces/<namespace>/<resource>/<name>[/status].
func writeOf(call gate.Call) Write {
	write := Write{Call: call}
	parts := strings.Split(strings.TrimPrefix(call.Path, "/"), "/")
	if len(parts) < 7 || parts[0] != "apis" || parts[3] != "namespaces" {
		return write
	}
	write.IsStatus = len(parts) == 8 && parts[7] == "status"
	switch parts[5] {
	case "addoninstallations":
		write.Cluster, write.Installation = ClusterOf(parts[4]), parts[6]
		write.readStamps()
	case "addonsets":
		write.Set = parts[6]
	}
	return write
}

// readStamps takes digest and moved from what is applied.
func (w *Write) readStamps() {
	var content struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if w.Method != http.MethodPatch || json.Unmarshal(w.Body, &content) != nil {
		return
	}
	w.Digest = content.Metadata.Annotations[v1.AnnotationDigest]
	w.Moved, _ = time.Parse(time.RFC3339Nano, content.Metadata.Annotations[v1.AnnotationMoved])
}

// Tally of writes: of installations, by what was done, of the status of sets, and of anything else.
type Tally struct{ Applied, Deleted, Statuses, Others int }

// Mark is a place in the log, for Since.
func (l *Log) Mark() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.writes)
}

// Since gives the writes after a mark.
func (l *Log) Since(mark int) []Write {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]Write{}, l.writes[mark:]...)
}

// Count counts the writes after a mark.
func (l *Log) Count(mark int) (sum Tally) {
	for _, write := range l.Since(mark) {
		switch {
		case write.Installation != "" && write.Method == http.MethodDelete:
			sum.Deleted++
		case write.Installation != "":
			sum.Applied++
		case write.Set != "" && write.IsStatus:
			sum.Statuses++
		default:
			sum.Others++
		}
	}
	return sum
}
