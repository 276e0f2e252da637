package fleet

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress writes plain lines, each with the seconds since the beginning. A nil Progress writes nothing.
type Progress struct {
	mutex sync.Mutex
	out   io.Writer
	begin time.Time
}

// NewProgress starts the clock now.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out, begin: time.Now()} }

// Printf writes one line.
func (p *Progress) Printf(format string, arguments ...any) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, arguments...))
}

// Write accepts whole lines of others.
func (p *Progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		p.Printf("%s", strings.TrimSuffix(line, "\n"))
	}
	return len(text), nil
}

// Elapsed is the time since the beginning.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.begin) }
