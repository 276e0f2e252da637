package gate

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Boundary is a place between two writes: before or after the nth of one kind.
type Boundary struct {
	// Write is what is written where, with no name that differs from run to run.
	Write string
	Nth   int
	After bool
}

func (b Boundary) String() string {
	side := "before"
	if b.After {
		side = "after"
	}
	return fmt.Sprintf("%s %s #%d", side, b.Write, b.Nth)
}

// IsStatus says whether the write is one of a status. How many of those there are depends on what a pass happens to see on its way; all
// other writes are the same in every run.
func (b Boundary) IsStatus() bool { return strings.HasSuffix(b.Write, "/status") }

var everyKill = flag.Bool("every-kill", false, "kill before and after each write, and not at some of them")

// Spread gives some boundaries, as many as said or some more or less, spread over all of them; with -every-kill, as in make sets
// and make kills, all. The steps are odd, so that there are kills before writes and after.
func Spread(all []Boundary, some int) (chosen []Boundary) {
	if *everyKill {
		return all
	}
	for i := 0; i < len(all); i += len(all)/some | 1 {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// SpreadOver is Spread where it matters at which boundaries: some of those that count, and with -every-kill all there are.
func SpreadOver(all []Boundary, some int, counts func(Boundary) bool) []Boundary {
	if *everyKill {
		return all
	}
	return Spread(slices.DeleteFunc(slices.Clone(all), func(at Boundary) bool { return !counts(at) }), some)
}

// Killer sees the writes of a process, on both sides, and kills it at a boundary.
type Killer struct {
	mutex   sync.Mutex
	doom    *Boundary
	process *fleet.Process
	counts  map[Boundary]int
	passed  []Boundary

	reached, killed bool
}

// NewKiller makes one for a boundary; nil: nobody is killed.
func NewKiller(doom *Boundary) *Killer { return &Killer{doom: doom, counts: map[Boundary]int{}} }

// Begin has the process that start gives be the one. Nothing passes before it is known whom to kill.
func (k *Killer) Begin(start func() *fleet.Process) *fleet.Process {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.process = start()
	return k.process
}

// Guard sees the writes at a gate, by the name that they are given; "": it is none of the story's.
func (k *Killer) Guard(nameOf func(Call) string) Guard {
	return Guard{
		Before: func(call Call) bool { return !call.Writes() || k.pass(nameOf(call), false) },
		After:  func(call Call) bool { return k.pass(nameOf(call), true) },
	}
}

// pass comes by a boundary: it kills there, or goes on. After a kill nothing of the killed one passes.
func (k *Killer) pass(write string, after bool) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.killed || write == "" {
		return !k.killed
	}
	kind := Boundary{Write: write, After: after}
	k.counts[kind]++
	here := kind
	here.Nth = k.counts[kind]
	k.passed = append(k.passed, here)
	if k.doom == nil {
		return true
	}
	k.reached = k.reached || here.Write == k.doom.Write && here.Nth == k.doom.Nth
	if here != *k.doom {
		return true
	}
	k.killed = true
	k.process.Kill()
	return false
}

// Spare ends the watch: from now on nobody is killed. True: the process was.
func (k *Killer) Spare() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.doom = nil
	return k.killed
}

// IsKilled says whether the process was killed.
func (k *Killer) IsKilled() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.killed
}

// IsReached says whether the write of the boundary was begun.
func (k *Killer) IsReached() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.reached
}

// Passed are the boundaries that were passed, in their order.
func (k *Killer) Passed() []Boundary {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.passed)
}

// KillEach tells a story once for each boundary, several at a time; run says whether the kill came. It gives the number of kills.
func KillEach(t *testing.T, all []Boundary, run func(*testing.T, Boundary) bool) int {
	t.Helper()
	var mutex sync.Mutex
	kills, missed := 0, 0
	t.Run("kill", func(t *testing.T) {
		for _, at := range all {
			t.Run(at.String(), func(t *testing.T) {
				t.Parallel()
				came := run(t, at)
				if !came && !at.IsStatus() {
					t.Errorf("the controller was through and never came by: the writes are not the same in every run")
				}
				mutex.Lock()
				defer mutex.Unlock()
				if came {
					kills++
				} else {
					missed++
				}
			})
		}
	})
	t.Logf("killed at %d of %d places; %d, of a status, were not come by again", kills, len(all), missed)
	if kills == 0 {
		t.Error("it was never killed")
	}
	return kills
}
