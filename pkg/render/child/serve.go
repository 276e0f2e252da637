package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// Methods are renderers by the name that Pool.Renderer is given.
type Methods map[string]render.Renderer

// Renderers are the renderers of a child.
type Renderers struct {
	Methods Methods
	Values  render.ValuesRenderer
}

// name is a child's first argument: no shell or kubelet sets this name.
const name = "trellis-render-child"

// Descriptors of a child. It has no others.
const (
	requestDescriptor = 3
	answerDescriptor  = 4
)

// order has the limits of a child, in its only argument.
type order struct {
	// Memory is the maximum of data that the child may allocate, in bytes.
	Memory int64
	// CPU is for the child's whole life, in seconds; the parent counts each rendering's.
	CPU uint64
}

// restAfter is the time without work after which a child frees memory.
const restAfter = time.Second

// Serve makes the process a child if it was started as one: it renders until its pipe closes, and ends the process.
// Otherwise it does nothing. It must be the first call of main, and of TestMain if tests use a Pool.
func Serve(renderers Renderers) {
	if len(os.Args) != 2 || os.Args[0] != name {
		return
	}
	var given order
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		os.Exit(2)
	}
	limitRuntime(given)
	said := confine(given)
	writer := bufio.NewWriterSize(os.NewFile(answerDescriptor, "answers"), pipeBytes)
	answer := &answerer{writer: writer}
	if answer.json(kindReady, said) != nil || writer.Flush() != nil || said.Problem != "" {
		os.Exit(2)
	}
	serve(renderers, bufio.NewReaderSize(os.NewFile(requestDescriptor, "requests"), pipeBytes), answer)
	os.Exit(0)
}

// limitRuntime keeps the Go runtime within the limits while it can: garbage is collected late while memory is free,
// and eagerly before the parent kills. A rendering can use one processor only.
func limitRuntime(given order) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(given.Memory / 10 * 8)
	debug.SetMaxStack(int(given.Memory / 4))
}

// serve works on requests. It reads while it works, so that a closed pipe ends the process.
func serve(renderers Renderers, reader io.Reader, answer *answerer) {
	requests := make(chan work)
	go func() {
		defer close(requests)
		for {
			next, err := receive(reader)
			if err != nil {
				os.Exit(0)
			}
			requests <- next
		}
	}()
	for {
		next, more := await(requests)
		if !more {
			return
		}
		if err := next(context.Background(), renderers, answer); err != nil && !errors.Is(err, errFailed) {
			return
		}
	}
}

// await returns the next request, and frees memory if there is none for a while.
func await(requests <-chan work) (work, bool) {
	rest := time.NewTimer(restAfter)
	defer rest.Stop()
	select {
	case next, more := <-requests:
		return next, more
	case <-rest.C:
		debug.FreeOSMemory()
	}
	next, more := <-requests
	return next, more
}
