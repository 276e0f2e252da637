package installing

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/fleet"
)

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

// usage is what a process and its children have used since their start.
type usage struct {
	// cpu is user and system time, ended children included.
	cpu time.Duration
	// peak is the most memory that the process had resident; children the sum of the peaks of its living children. In bytes.
	peak, children int64
}

// processesOf tells what a process and its living and ended children used.
func processesOf(b *testing.B, id int) usage {
	b.Helper()
	total := usage{cpu: cpuOf(id)}
	total.peak, _ = fleet.PeakMemory(id) // nothing of one that is gone
	for _, child := range childrenOf(id) {
		peak, _ := fleet.PeakMemory(child)
		total.cpu += cpuOf(child)
		total.children += peak
	}
	if total.cpu == 0 {
		b.Fatalf("nothing is known of process %d", id)
	}
	return total
}

// cpuOf is 0 for a process that is gone: its parent has its time by then.
func cpuOf(id int) time.Duration {
	var ticks int64
	fields := statOf(id)
	for i := 11; i <= 14 && i < len(fields); i++ { // utime, stime, cutime, cstime
		count, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += count
	}
	return time.Duration(ticks) * tick
}

// statOf are the fields of /proc/ID/stat after the program's name.
func statOf(id int) []string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return strings.Fields(rest)
}

func childrenOf(parent int) (ids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		id, _ := strconv.Atoi(filepath.Base(path))
		if fields := statOf(id); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			ids = append(ids, id)
		}
	}
	return ids
}

// cost is the CPU of every process in a phase.
type cost map[string]time.Duration

// Names of processes in a cost.
const (
	managerProcess = "manager"
	serverProcess  = "apiserver"
	etcdProcess    = "etcd"
	benchProcess   = "bench"
)

// costs is what every process has used until now.
func (w *world) costs(b *testing.B) cost {
	b.Helper()
	now := cost{benchProcess: cpuOf(os.Getpid())}
	for _, process := range w.fleet.Processes() {
		switch name := process.Name(); {
		case strings.HasSuffix(name, "kube-apiserver"):
			now[serverProcess] = cpuOf(process.PID())
		case name == "etcd":
			now[etcdProcess] = cpuOf(process.PID())
		}
	}
	if w.manager != nil {
		now[managerProcess] = processesOf(b, w.manager.process.PID()).cpu
	}
	return now
}

func (c cost) since(before cost) cost {
	spent := cost{}
	for name, used := range c {
		spent[name] = used - before[name]
	}
	return spent
}

// per is a part of a cost for one of so many, in milliseconds.
func (c cost) per(name string, count int) float64 {
	return float64(c[name].Microseconds()) / 1000 / float64(count)
}

// text is every process's CPU for one of so many.
func (c cost) text(count int) string {
	return fmt.Sprintf("CPU ms each: manager %.1f, API server %.1f, etcd %.1f, bench %.1f",
		c.per(managerProcess, count), c.per(serverProcess, count), c.per(etcdProcess, count), c.per(benchProcess, count))
}

// seconds is every process's CPU.
func seconds(c cost) string {
	return fmt.Sprintf("CPU s: manager %.2f, API server %.2f, etcd %.2f, bench %.2f", c[managerProcess].Seconds(),
		c[serverProcess].Seconds(), c[etcdProcess].Seconds(), c[benchProcess].Seconds())
}
