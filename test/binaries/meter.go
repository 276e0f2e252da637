package binaries

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// every is how often the progress of long work is a line of its own where lines can't be rewritten.
const every = 15 * time.Second

// meter shows the progress of one piece of work, with its time: on a terminal in one line that is rewritten, elsewhere in a
// line every 15 seconds.
type meter struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	done     chan struct{}
	ended    sync.WaitGroup

	mutex  sync.Mutex
	latest string
}

func newMeter(out io.Writer) *meter {
	m := &meter{out: out, terminal: isTerminal(out), begin: time.Now(), done: make(chan struct{})}
	pause := every
	if m.terminal {
		pause = 200 * time.Millisecond
	}
	ticker := time.NewTicker(pause)
	m.ended.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-m.done:
				return
			case <-ticker.C:
				m.write()
			}
		}
	})
	return m
}

func isTerminal(out io.Writer) bool {
	file, isFile := out.(*os.File)
	if !isFile {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say what is done at this moment.
func (m *meter) say(format string, arguments ...any) {
	m.mutex.Lock()
	first := m.latest == ""
	m.latest = fmt.Sprintf(format, arguments...)
	m.mutex.Unlock()
	if first {
		m.write()
	}
}

func (m *meter) write() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	text := fmt.Sprintf("%s, %s", m.latest, time.Since(m.begin).Round(time.Second))
	if m.terminal {
		fmt.Fprintf(m.out, "\r\033[K%s", text)
		return
	}
	fmt.Fprintln(m.out, text)
}

// finish ends with a line about what was achieved.
func (m *meter) finish(format string, arguments ...any) {
	m.end()
	fmt.Fprintf(m.out, "%s in %s\n", fmt.Sprintf(format, arguments...), time.Since(m.begin).Round(time.Second))
}

// end shows nothing further. It may be called more than once.
func (m *meter) end() {
	select {
	case <-m.done:
		return
	default:
	}
	close(m.done)
	m.ended.Wait()
	if m.terminal {
		fmt.Fprint(m.out, "\r\033[K")
	}
}
