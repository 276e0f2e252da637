// Package run starts the commands of a plan, one after the other, and leaves nothing running: each has a process
// group of its own, which is interrupted with the run, given time to end, and then killed.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Command is one command of a plan.
type Command struct {
	// Words are the program and its arguments.
	Words []string
	// Folder is where it runs, below the checkout.
	Folder string
	// Environment is added to that of this process.
	Environment []string
}

// Runner runs commands.
type Runner struct {
	// Checkout is the top folder.
	Checkout string
	// Environment is added to that of each command.
	Environment []string
	// Grace is how long a command may take to end after it was interrupted. Fleets stop their API servers meanwhile.
	Grace time.Duration
}

// ErrFailed is the end of a command that ran and did not succeed; its output says why.
var ErrFailed = errors.New("failed")

// Run runs a command and hands each line of its output to show, without its end. It returns when the command and its
// process group are gone: nil, ErrFailed, the context's error where it was interrupted, or why the command could not
// run.
func (r Runner) Run(ctx context.Context, command Command, show func(line string)) error {
	// The kernel kills the child when the thread that started it ends, so that it does not outlive this process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	started := exec.CommandContext(ctx, command.Words[0], command.Words[1:]...)
	started.Dir = filepath.Join(r.Checkout, command.Folder)
	started.Env = append(append(os.Environ(), r.Environment...), command.Environment...)
	lines := &lineWriter{show: show}
	started.Stdout, started.Stderr = lines, lines
	started.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started.Cancel = func() error { return syscall.Kill(-started.Process.Pid, syscall.SIGINT) }
	started.WaitDelay = r.Grace
	if err := started.Start(); err != nil {
		return fmt.Errorf("starting %q: %w", command.Words[0], err)
	}
	err := started.Wait()
	endGroup(started.Process.Pid)
	lines.flush()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return ErrFailed
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%q ended and left processes that hold its output: %w", command.Words[0], ErrFailed)
	default:
		return err
	}
}

// gone is how long the kernel may take to clear a process group that was killed. In a container whose first process
// does not wait for orphans, the dead stay in it.
const gone = 5 * time.Second

// endGroup kills what is left of a process group and waits until it is gone.
func endGroup(group int) {
	if syscall.Kill(-group, syscall.SIGKILL) != nil {
		return
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.After(gone); ; {
		select {
		case <-end:
			return
		case <-look.C:
			if syscall.Kill(-group, 0) != nil {
				return
			}
		}
	}
}

// lineWriter cuts what is written into lines.
type lineWriter struct {
	show func(string)
	rest []byte
}

var _ io.Writer = &lineWriter{}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		w.show(string(w.rest[:end]))
		w.rest = w.rest[end+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.show(string(w.rest))
		w.rest = nil
	}
}
