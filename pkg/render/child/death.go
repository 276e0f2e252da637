package child

import (
	"bytes"
	"os"
	"syscall"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// death is why a child exited.
type death string

const (
	// deathStack: its stack ran out.
	deathStack death = "stack"
	// deathMemory: the kernel refused it memory.
	deathMemory death = "memory"
	// deathKilled: a signal ended it that nobody can refuse: ours, the kernel's when the machine has no memory, an administrator's.
	deathKilled death = "killed"
	// deathExit: it ended by itself.
	deathExit death = "exit"
)

// runtimeWords are what the Go runtime begins with when it gives up (runtime/stack.go, runtime/malloc.go, runtime/mem_linux.go).
var runtimeWords = []struct {
	words string
	death death
}{
	{"goroutine stack exceeds", deathStack},
	{"stack overflow", deathStack},
	{"out of memory", deathMemory},
	{"cannot allocate", deathMemory},
}

// deathOf tells why a child exited, from its state and its first words.
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

// dyingTime is how long a child that closed its pipe may take to exit: the kernel has to give its memory back.
const dyingTime = 10 * time.Second

// deathError is the error about a child whose pipe broke in the middle of a rendering. Nobody has killed it here.
func (p *process) deathError(addon string) error {
	late := time.NewTimer(dyingTime)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		return &render.DiedError{Addon: addon} // it closed its pipe and stays
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
