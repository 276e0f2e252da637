package manager

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Red when a renderer may take more than its container has, and the container is ended in its
// place.
func TestRenderersFitTheContainer(t *testing.T) {
	flags := Flags{memory: 2560 << 20}
	if err := flags.CheckMemory("render-memory", 512<<20); err != nil {
		t.Error(err)
	}
	if err := flags.CheckMemory("render-memory", 4<<30); err == nil || !strings.Contains(err.Error(), "--render-memory") {
		t.Errorf("got %v", err)
	}
	if err := (&Flags{}).CheckMemory("render-memory", 4<<30); err != nil {
		t.Errorf("nobody said how much there is: %v", err)
	}
}

// TestMemoryHasALimit: a manager collects before the container's limit ends it, and leaves room for
// renderers.
func TestMemoryHasALimit(t *testing.T) {
	before, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
	})
	for _, test := range []struct {
		why          string
		flags        Flags
		environment  string
		others, want int64
	}{
		{why: "alone in its container", flags: Flags{memory: 1000 << 20}, want: 900 << 20},
		{why: "beside renderers", flags: Flags{memory: 2560 << 20}, others: 1536 << 20, want: (1024 << 20) / 10 * 9},
		{why: "beside more than there is room for", flags: Flags{memory: 1000 << 20}, others: 990 << 20, want: 225 << 20},
		{why: "nobody said how much there is", want: math.MaxInt64},
		{why: "an operator's own limit stays", flags: Flags{memory: 1000 << 20}, environment: "1GiB", want: math.MaxInt64},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", test.environment)
			debug.SetMemoryLimit(math.MaxInt64)
			test.flags.LimitMemory(test.others)
			if diff := cmp.Diff(test.want, debug.SetMemoryLimit(-1)); diff != "" {
				t.Errorf("limit (-want +got):\n%s", diff)
			}
		})
	}
}

// Red when a manager collects as often as any program, or when an operator's own GOGC is overruled.
func TestCollectionsAreRarer(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, test := range []struct {
		environment string
		want        int
	}{{"50", 100}, {"", growth}} {
		t.Setenv("GOGC", test.environment)
		(&Flags{}).LimitMemory(0)
		if got := debug.SetGCPercent(-1); got != test.want {
			t.Errorf("with GOGC=%q the heap may grow by %d %%, want %d", test.environment, got, test.want)
		}
		debug.SetGCPercent(100)
	}
}

// Red when a heap of the size that a large add-on takes may double, when a small one is collected as often as any program's, and when
// a large one is collected all the time.
func TestGrowthIsBounded(t *testing.T) {
	for _, test := range []struct {
		why  string
		live uint64
		want int
	}{
		{"nothing lives yet", 0, growth},
		{"a manager at rest", 20 << 20, growth},
		{"twice as much is all there is room for", 24 << 20, growth},
		{"a large add-on", 80 << 20, 60},
		{"from where on it comes near the default", 96 << 20, 50},
		{"many Clusters", 512 << 20, 90},
		{"a heap that is not for a container", 64 << 30, 99},
	} {
		if got := growthOf(test.live); got != test.want {
			t.Errorf("%s: %d MiB may grow by %d %%, want %d", test.why, test.live>>20, got, test.want)
		}
	}
}

// Red when only the first collection counts, and when what lives is not asked for.
func TestEachCollectionPacesTheNextOne(t *testing.T) {
	collected := make(chan struct{}, 16)
	afterEachCollection(func() {
		select {
		case collected <- struct{}{}:
		default:
		}
	})
	for calls, collections := 0, 0; calls < 3; collections++ {
		if collections > 1000 {
			t.Fatalf("of %d collections, %d were told of", collections, calls)
		}
		runtime.GC()
		select {
		case <-collected:
			calls++
		case <-time.After(10 * time.Millisecond): // it is told of by another goroutine
		}
	}
}
