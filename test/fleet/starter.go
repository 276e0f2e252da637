package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// starter starts processes from one thread that lives as long as they may: the kernel sends the parent-death signal
// when the starting thread ends, and Go ends threads at any time.
type starter struct {
	requests  chan func()
	mutex     sync.Mutex
	processes []*Process
	stopped   bool
	// ending is closed with the stop.
	ending chan struct{}
}

var errStopped = errors.New("the fleet is stopped")

// ErrEnded is the result of Ended for a process that ended without an error.
var ErrEnded = errors.New("exit status 0")

func newStarter() *starter {
	s := &starter{requests: make(chan func()), ending: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *starter) start(command Command) (*Process, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", command.Name, err)
	}
	defer log.Close()
	p := &Process{name: command.Name, log: command.Log, how: command, done: make(chan struct{})}
	p.command = exec.CommandContext(context.Background(), command.Path, command.Arguments...)
	p.command.Stdout, p.command.Stderr, p.command.Dir = log, log, command.Home
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + command.Home}, command.Environment...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if command.System != nil {
		command.System(p.command.SysProcAttr)
	}
	if err := s.launch(p); err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Name, err)
	}
	go func() {
		p.err = p.command.Wait()
		if p.err == nil {
			p.err = ErrEnded
		}
		s.forget(p)
		close(p.done)
	}()
	return p, nil
}

func (s *starter) launch(p *Process) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.stopped {
		return errStopped
	}
	answer := make(chan error, 1)
	s.requests <- func() { answer <- p.command.Start() }
	if err := <-answer; err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

func (s *starter) isStopped() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.stopped
}

// sleep reports whether the pause passed before the stop.
func (s *starter) sleep(pause time.Duration) bool {
	select {
	case <-s.ending:
		return false
	case <-time.After(pause):
		return true
	}
}

func (s *starter) running() []*Process {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.processes)
}

func (s *starter) forget(p *Process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.processes = slices.DeleteFunc(s.processes, func(other *Process) bool { return other == p })
}

// stop ends all processes, the youngest first, so that none logs errors about lost servers.
func (s *starter) stop() {
	s.mutex.Lock()
	running := slices.Clone(s.processes)
	stopped := s.stopped
	s.stopped = true
	if !stopped {
		close(s.ending)
	}
	s.mutex.Unlock()
	for _, p := range slices.Backward(running) {
		p.Kill()
	}
	if !stopped {
		close(s.requests)
	}
}
