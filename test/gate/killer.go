package gate

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
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

var everyKill = flag.Bool("every-kill", false, "kill before and after each write, also with -short")

// Spread gives the boundaries to kill at: all of them, and with -short about as many as said, spread over all. Which ones, the rotation
// says.
func Spread(t testing.TB, all []Boundary, some int) []Boundary {
	t.Helper()
	return SpreadOver(t, all, some, func(Boundary) bool { return true })
}

// SpreadOver is Spread where -short kills only at boundaries that count.
func SpreadOver(t testing.TB, all []Boundary, some int, counts func(Boundary) bool) []Boundary {
	t.Helper()
	if *everyKill || !testing.Short() {
		return all
	}
	// A second write of one kind may be a retry after a conflict, which a quieter machine does not make.
	return spread(slices.DeleteFunc(slices.Clone(all), func(at Boundary) bool { return at.Nth > 1 || !counts(at) }), some, long.Rotation(t))
}

// spread takes every step-th boundary; the rotation says where it starts. The step is odd since boundaries alternate between before and
// after a write: an even step would always kill on the same side.
func spread(all []Boundary, some int, turn uint32) (chosen []Boundary) {
	step := len(all)/some | 1
	for i := int(turn % uint32(max(1, min(step, len(all))))); i < len(all); i += step {
		chosen = append(chosen, all[i])
	}
	return chosen
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

// NewKiller makes one for a boundary; nil: no process is killed.
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

// Spare ends the watch: from now on the process is not killed. True: it already was.
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
				} else if at.IsStatus() {
					missed++
				}
			})
		}
	})
	t.Logf("killed at %d of %d places; %d, of a status, were not reached again", kills, len(all), missed)
	allStatus := !slices.ContainsFunc(all, func(at Boundary) bool { return !at.IsStatus() })
	if kills == 0 && (len(all) == 0 || !allStatus) {
		t.Error("it was never killed")
	}
	return kills
}
