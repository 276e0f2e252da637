package installing

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

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
		now[managerProcess] = UsageOf(b, w.manager.process.PID()).CPU
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
