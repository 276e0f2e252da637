package installing

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

// Usage is what a process and its children have used since their start.
type Usage struct {
	// CPU is user and system time, ended children included.
	CPU time.Duration
	// peak is the most memory that the process had resident; children the sum of the peaks of its living children. In bytes.
	peak, children int64
}

// UsageOf tells what a process and its living and ended children used.
func UsageOf(t testing.TB, id int) Usage {
	t.Helper()
	total := Usage{CPU: cpuOf(id)}
	total.peak, _ = fleet.PeakMemory(id) // nothing of one that is gone
	for _, child := range childrenOf(id) {
		peak, _ := fleet.PeakMemory(child)
		total.CPU += cpuOf(child)
		total.children += peak
	}
	if total.CPU == 0 {
		t.Fatalf("nothing is known of process %d", id)
	}
	return total
}

// AwaitQuiet waits until a process and its children have used next to nothing for a second.
func AwaitQuiet(t testing.TB, id int) {
	t.Helper()
	last, at := UsageOf(t, id), time.Now()
	expect.Eventually(t, patience, func() error {
		if time.Since(at) < time.Second {
			return fmt.Errorf("not a second since the last look")
		}
		now := UsageOf(t, id)
		used := now.CPU - last.CPU
		last, at = now, time.Now()
		if used > 50*time.Millisecond {
			return fmt.Errorf("process %d used %s of CPU in a second", id, used)
		}
		return nil
	})
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

// Median is between the two in the middle, where their number is even.
func Median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
