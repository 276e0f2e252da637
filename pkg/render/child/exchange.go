package child

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// afterTimeout is when reading and writing give up, if even killing the child did not end them.
const afterTimeout = 10 * time.Second

// unsentError says that what was to be sent could not be read; the child has no part in it.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }

// pipe notes whether writing failed by itself.
type pipe struct {
	file   *os.File
	broken bool
}

func (p *pipe) Write(data []byte) (int, error) {
	written, err := p.file.Write(data)
	p.broken = p.broken || err != nil
	return written, err
}

// exchange asks a child and reads the answer.
func exchange(process *process, timeout time.Duration, ask question) (*answer, error) {
	deadline := time.Now().Add(timeout + afterTimeout)
	if err := errors.Join(process.requests.SetWriteDeadline(deadline), process.answers.SetReadDeadline(deadline)); err != nil {
		return nil, fmt.Errorf("setting a deadline: %w", err)
	}
	to := &pipe{file: process.requests}
	if err := ask(bufio.NewWriterSize(to, eager)); err != nil {
		if to.broken {
			return nil, err
		}
		return nil, &unsentError{err: err}
	}
	read, err := readAnswer(process.reading)
	if err == nil && process.reading.Buffered() > 0 {
		return nil, &render.ProtocolError{Problem: "more than it was asked for"}
	}
	return read, err
}
