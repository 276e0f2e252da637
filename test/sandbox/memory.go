package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Memory watches the memory of all processes of a sandbox, this one included.
type Memory struct {
	peak atomic.Int64
}

// WatchMemory takes a look each second until the context ends.
func (s *Sandbox) WatchMemory(ctx context.Context) *Memory {
	memory := &Memory{}
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			memory.note(s.memoryNow())
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return memory
}

// Peak is the largest sum seen, in bytes. It counts pages that processes share once for each of them, and so rather too
// much than too little.
func (m *Memory) Peak() int64 { return m.peak.Load() }

func (m *Memory) note(bytes int64) {
	if bytes > m.peak.Load() {
		m.peak.Store(bytes)
	}
}

func (s *Sandbox) memoryNow() int64 {
	total := rss(os.Getpid())
	for _, process := range s.Fleet.Processes() {
		total += rss(process.PID())
	}
	return total
}

// rss is the resident memory of a process in bytes; 0 when it is gone.
func rss(pid int) int64 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if fields := strings.Fields(scanner.Text()); len(fields) == 3 && fields[0] == "VmRSS:" {
			kibibytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kibibytes << 10
		}
	}
	return 0
}
