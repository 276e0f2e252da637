package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

const (
	// pipeBytes is the size of pipes and buffers: what the kernel lets everybody have.
	pipeBytes = 1 << 20
	// startTime is how long a child may take to be ready.
	startTime = 30 * time.Second
)

// process is a child as the parent sees it. One rendering has it at a time.
type process struct {
	handle   *os.Process
	requests *os.File
	answers  *os.File
	// reading is answers with a buffer; between two answers it is empty.
	reading *bufio.Reader
	usage   usage
	ready   ready
	// bound says that the child belongs to tenant; served is how many renderings it has made.
	bound  bool
	tenant string
	served int
	exited chan struct{}
}

// starter starts processes from one thread that stays: the kernel's signal at a parent's death is sent when the thread dies
// that started a child.
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

func (s *starter) close() { close(s.calls) }

// start starts a child and waits until it is ready.
func (s *starter) start(told order) (*process, error) {
	encoded, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("encoding a child's limits: %w", err)
	}
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer theirRequests.Close()
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		requests.Close()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer theirAnswers.Close()
	widen(requests)
	widen(answers)
	made := &process{
		requests: requests, answers: answers, reading: bufio.NewReaderSize(answers, eager), exited: make(chan struct{}),
	}
	program, err := programPath()
	if err == nil {
		done := make(chan struct{})
		s.calls <- func() {
			defer close(done)
			made.handle, err = os.StartProcess(program, []string{name, string(encoded)}, &os.ProcAttr{
				Dir: "/", Env: []string{}, Files: []*os.File{nil, nil, nil, theirRequests, theirAnswers}, Sys: attributes(),
			})
		}
		<-done
	}
	if err != nil {
		requests.Close()
		answers.Close()
		return nil, fmt.Errorf("starting a renderer: %w", err)
	}
	go func() {
		_, _ = made.handle.Wait()
		close(made.exited)
	}()
	made.usage = openUsage(made.handle.Pid)
	return made, made.greet()
}

// greet waits for the child's first word, and ends a child that can't be used.
func (p *process) greet() error {
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
		return said, &render.ProtocolError{Problem: "a first word that is none"}
	}
	return said, nil
}

// kill ends the child and whatever it started, without waiting.
func (p *process) kill() { killGroup(p.handle) }

// end kills the child and returns when nothing of it is left.
func (p *process) end() {
	p.kill()
	<-p.exited
	p.requests.Close()
	p.answers.Close()
	p.usage.close()
}
