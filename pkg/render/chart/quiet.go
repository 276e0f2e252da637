package chart

import (
	"io"
	"log"
	"sync"
)

// gate stands before the standard logger's writer; it is shut while Helm works, whose warnings may print values.
type gate struct {
	mutex   sync.Mutex
	next    io.Writer
	working int
}

var standardLog gate

func (g *gate) Write(line []byte) (int, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.working > 0 {
		return len(line), nil
	}
	return g.next.Write(line)
}

// enter shuts the gate, and puts it before the writer that the logger has now.
func (g *gate) enter() {
	writer := log.Writer()
	g.mutex.Lock()
	g.working++
	if writer != io.Writer(g) {
		g.next = writer
	}
	g.mutex.Unlock()
	log.SetOutput(g)
}

func (g *gate) leave() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.working--
}

// quietly does the work while the standard logger is silent.
func quietly(work func()) {
	standardLog.enter()
	defer standardLog.leave()
	work()
}
