package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Times of polls and deadlines of starting programs. They are generous, since builds and tests may share few cores.
const (
	pollEvery     = 50 * time.Millisecond
	startDeadline = 3 * time.Minute
)

// Command describes a program to start.
type Command struct {
	// Name is used in messages and, by default, for the log file.
	Name string
	// Path of the program, absolute.
	Path string
	// Arguments of the program without its name.
	Arguments []string
	// Environment is added to PATH and HOME, as KEY=value.
	Environment []string
	// Home is the program's HOME and working folder; default is the fleet's folder.
	Home string
	// Log is the file to which its output is appended; default is one in the fleet's folder of logs.
	Log string
	// System changes the kernel's attributes of the process; nil: none.
	System func(*syscall.SysProcAttr)
}

// Process is a program that runs until it ends, is stopped, or its owner dies.
type Process struct {
	name, log string
	command   *exec.Cmd
	// how is its command.
	how  Command
	done chan struct{}
	err  error
	// killed says that its owner ended it: it is not started again.
	killed atomic.Bool
}

// ExitError reports that a process ended although it should run. Its message has the last lines of the log.
type ExitError struct {
	// Name of the process.
	Name string
	// Tail is the end of its log.
	Tail string
	// Err is the system's error about the end.
	Err error
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended: %v; the end of its log:\n%s", e.Name, e.Err, e.Tail)
}

func (e *ExitError) Unwrap() error { return e.Err }

// Name is the command's.
func (p *Process) Name() string { return p.name }

// PID is the process's id.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure is nil while the process runs, and an ExitError afterwards.
func (p *Process) Failure() error {
	select {
	case <-p.done:
		return &ExitError{Name: p.name, Tail: Tail(p.log, 15), Err: p.err}
	default:
		return nil
	}
}

// Ended is the system's error about the process's end; nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal to the process; for an ended one it does nothing and returns no error.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s: %w", signal, p.name, err)
	}
	return nil
}

// Kill ends the process and all of its process group at once and waits until it is gone.
func (p *Process) Kill() {
	p.killed.Store(true)
	select {
	case <-p.done: // the id may belong to another process by now
	default:
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.done
}

// Await polls until ready returns no error; it gives up when the process ends. The error names the awaited condition.
func (p *Process) Await(ctx context.Context, what string, ready func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, startDeadline, true, func(ctx context.Context) (bool, error) {
		if failure := p.Failure(); failure != nil {
			return false, failure
		}
		last = ready(ctx)
		return last == nil, nil
	})
	if err != nil && wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s: %w; last: %w; the end of its log:\n%s", what, err, last, Tail(p.log, 15))
	}
	return err
}

// Tail returns the last lines of a log, or the reason why it can't be read.
func Tail(path string, most int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > 16<<10 {
		_, _ = file.Seek(-16<<10, io.SeekEnd)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-most):], "\n")
}

// PeakMemory is the maximum resident memory of a process so far, in bytes, as the kernel counts it.
func PeakMemory(pid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no VmHWM", path)
}

// Get reads an answer with status 200 of a server on this machine, such as probes and metrics.
func Get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}
