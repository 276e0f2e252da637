package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

const (
	// wordsBytes is the read size of the Go runtime's last messages: the first line has the cause of the child's
	// death.
	wordsBytes = 512
	// pipeBytes is the size of pipes and buffers: the kernel's limit for unprivileged users.
	pipeBytes = 1 << 20
	// startTime is how long a child may take to be ready.
	startTime = 30 * time.Second
)

// process is a child as the parent sees it. One rendering at a time uses it.
type process struct {
	handle   *os.Process
	requests *os.File
	answers  *os.File
	// reading is answers with a buffer, which is empty between two answers.
	reading *bufio.Reader
	// words are the messages of the Go runtime when the child dies: they are matched, and never shown.
	words *os.File
	usage usage
	ready ready
	// bound: the child belongs to the tenant; served counts its renderings; waited: it was idle.
	bound  bool
	tenant string
	served int
	waited bool
	exited chan struct{}
	// death is the reason why it exited, once exited is closed.
	death death
	// mutex guards the fate, and prevents the kill of another process that has a dead child's identifier.
	mutex sync.Mutex
	fate  fate
}

// fate reports whether a child can still work.
type fate string

const (
	alive  fate = "alive"
	killed fate = "killed"
	// gone: it has exited, and another process may have its identifier.
	gone fate = "gone"
)

// starter starts processes from one lasting thread: the kernel ends them when it ends.
type starter struct{ calls chan func() }

func newStarter() *starter {
	made := &starter{calls: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for call := range made.calls {
			call()
		}
	}()
	return made
}

func (s *starter) start(given order) (*process, error) {
	encoded, err := json.Marshal(given)
	if err != nil {
		return nil, fmt.Errorf("encoding a child's limits: %w", err)
	}
	lines, err := newLines()
	if err != nil {
		return nil, err
	}
	widen(lines.requests[ours])
	widen(lines.answers[ours])
	made := &process{
		requests: lines.requests[ours], answers: lines.answers[ours], words: lines.words[ours],
		reading: bufio.NewReaderSize(lines.answers[ours], eager), exited: make(chan struct{}), fate: alive,
	}
	program, err := programPath()
	if err == nil {
		done := make(chan struct{})
		s.calls <- func() {
			defer close(done)
			made.handle, err = os.StartProcess(program, []string{name, string(encoded)}, &os.ProcAttr{
				Dir: "/", Env: []string{}, Sys: attributes(),
				Files: []*os.File{nil, nil, lines.words[theirs], lines.requests[theirs], lines.answers[theirs]},
			})
		}
		<-done
	}
	lines.closeTheirs() // immediately, so that the pipes end if the child dies at its start
	if err != nil {
		made.closeFiles()
		return nil, fmt.Errorf("starting a renderer: %w", err)
	}
	go made.waitForExit()
	made.usage = openUsage(made.handle.Pid)
	if err := made.awaitReady(); err != nil {
		return nil, err
	}
	return made, nil
}

// lines are the pipes of a child, each with the parent's end and the child's.
type lines struct{ requests, answers, words [2]*os.File }

const (
	ours   = 0
	theirs = 1
)

func newLines() (*lines, error) {
	made := &lines{}
	var failed [3]error
	made.requests[theirs], made.requests[ours], failed[0] = os.Pipe()
	made.answers[ours], made.answers[theirs], failed[1] = os.Pipe()
	made.words[ours], made.words[theirs], failed[2] = os.Pipe()
	if err := errors.Join(failed[:]...); err != nil {
		made.closeTheirs()
		(&process{requests: made.requests[ours], answers: made.answers[ours], words: made.words[ours]}).closeFiles()
		return nil, fmt.Errorf("creating a pipe: %w", err)
	}
	return made, nil
}

func (l *lines) closeTheirs() {
	for _, end := range []*os.File{l.requests[theirs], l.answers[theirs], l.words[theirs]} {
		_ = end.Close()
	}
}

func (p *process) closeFiles() {
	for _, file := range []*os.File{p.requests, p.answers, p.words} {
		_ = file.Close()
	}
}

// waitForExit records why the child has exited, and reads its last messages to their end.
func (p *process) waitForExit() {
	first := make([]byte, wordsBytes)
	read, _ := io.ReadFull(p.words, first)
	_, _ = io.Copy(io.Discard, p.words)
	awaitExit(p.handle.Pid)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	state, _ := p.handle.Wait()
	p.death = deathOf(state, first[:read])
	p.fate = gone
	close(p.exited)
}

// awaitReady waits for the child's first message, and ends a child that can't be used.
func (p *process) awaitReady() error {
	err := p.answers.SetReadDeadline(time.Now().Add(startTime))
	if err == nil {
		p.ready, err = readReady(p.reading)
	}
	if err == nil && p.ready.Problem != "" {
		err = errors.New(p.ready.Problem)
	}
	if err != nil {
		p.end()
		return fmt.Errorf("starting a renderer: %w", err)
	}
	return nil
}

func readReady(reader *bufio.Reader) (ready, error) {
	var said ready
	frames := &frames{reader: reader, limits: answerLimits, left: maxTextBytes}
	kind, payload, err := frames.next()
	if err != nil {
		return said, err
	}
	if kind != kindReady || json.Unmarshal(payload, &said) != nil {
		return said, &render.ProtocolError{Problem: "a first message that is not valid"}
	}
	return said, nil
}

// lives reports whether a child can be given work.
func (p *process) lives() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.fate == alive
}

// kill kills the child and its own children, without waiting, unless it has exited.
func (p *process) kill() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.fate != gone {
		p.fate = killed
		killGroup(p.handle)
	}
}

// end kills the child and waits until it has exited.
func (p *process) end() {
	p.kill()
	_ = p.words.SetReadDeadline(time.Now().Add(afterTimeout))
	<-p.exited
	p.closeFiles()
	p.usage.close()
}
