package child

import (
	"bytes"
	"os"
	"syscall"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// death is the reason why a child exited.
type death string

const (
	// deathStack: its stack ran out.
	deathStack death = "stack"
	// deathMemory: the kernel refused it memory.
	deathMemory death = "memory"
	// deathKilled: SIGKILL, from the manager, from the kernel without memory, or from an administrator.
	deathKilled death = "killed"
	// deathExit: it ended without a signal.
	deathExit death = "exit"
)

// runtimeWords are prefixes of the Go runtime's last messages (runtime/stack.go, malloc.go, mem_linux.go).
var runtimeWords = []struct {
	words string
	death death
}{
	{"goroutine stack exceeds", deathStack},
	{"stack overflow", deathStack},
	{"out of memory", deathMemory},
	{"cannot allocate", deathMemory},
}

func deathOf(state *os.ProcessState, words []byte) death {
	if state == nil {
		return deathExit
	}
	if status, known := state.Sys().(syscall.WaitStatus); known && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return deathKilled
	}
	for _, known := range runtimeWords {
		if bytes.Contains(words, []byte(known.words)) {
			return known.death
		}
	}
	return deathExit
}

// dyingTime is how long a child with a closed pipe may take to exit.
const dyingTime = 10 * time.Second

// deathError is the error for a child whose pipe broke in a rendering, and that the manager did not kill.
func (p *process) deathError(addon string) error {
	late := time.NewTimer(dyingTime)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		return &render.DiedError{Addon: addon} // it closed its pipe and still runs
	}
	switch p.death {
	case deathStack:
		return &render.DiedError{Addon: addon, Of: render.DiedOfStack}
	case deathMemory:
		return &render.DiedError{Addon: addon, Of: render.DiedOfMemory}
	case deathKilled:
		return &render.LostError{Addon: addon}
	}
	return &render.DiedError{Addon: addon}
}
