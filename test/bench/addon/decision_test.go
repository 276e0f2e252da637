package addon_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/bench/bar"
)

// BenchmarkDecision is what a catalogue edit has decided: one entry parsed, 5,000 versions held against 12 pairs of
// versions. The bar is 250 ms of processor time, however many clusters there are.
func BenchmarkDecision(b *testing.B) {
	var entries []*catalogue.Entry
	for i := range addons {
		entries = append(entries, parsed(b, i))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var spent time.Duration
	for b.Loop() {
		before := threadTime(b)
		entries[7] = parsed(b, 7)
		for _, version := range kubernetesVersions() {
			found, err := catalogue.Available(entries, catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: version})
			if err != nil || found.Versions != addons*versionsOfAnAddon {
				b.Fatalf("%d versions fit, %v", found.Versions, err)
			}
		}
		spent += threadTime(b) - before
	}
	each := spent / time.Duration(b.N)
	b.Logf("an edit of a catalogue of %d versions is decided for %d pairs of versions in %s of processor time",
		addons*versionsOfAnAddon, len(kubernetesVersions()), each)
	bar.Time(b, "cpu-ms/edit", float64(each.Microseconds())/1000, 250)
}

func parsed(b *testing.B, number int) *catalogue.Entry {
	b.Helper()
	entry, err := catalogue.NewEntry(mergedCatalogue(number, "", false))
	if err != nil {
		b.Fatal(err)
	}
	return entry
}

// threadTime is the processor time of this thread. What the collector does on other threads meanwhile is not in it.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
