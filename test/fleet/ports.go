package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// lowestPort and highestPort limit the ports of a fleet. They are below the range that Linux uses for outgoing
// connections (from 32768 on), which could otherwise use one between the check and the start.
const lowestPort, highestPort = 16000, 32000

var errNoPort = errors.New("no free port on 127.0.0.1")

// taken prevents this process from giving one port to two programs that are both about to start.
var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort finds a port on 127.0.0.1 without a listener that this process did not return before.
func FreePort() (int, error) {
	taken.Lock()
	defer taken.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if taken.ports[port] {
			continue
		}
		listener, err := listen(port)
		if err != nil {
			continue
		}
		_ = listener.Close()
		taken.ports[port] = true
		return port, nil
	}
	return 0, errNoPort
}

// Listen opens a listener on a free port of 127.0.0.1.
func Listen() (net.Listener, error) {
	for range 5 {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		if listener, err := listen(port); err == nil {
			return listener, nil
		}
	}
	return nil, errNoPort
}

// BlackHole is the address of a listener that accepts connections and never answers, until the test ends.
func BlackHole(t testing.TB) string {
	t.Helper()
	listener, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, connection) }()
		}
	}()
	return listener.Addr().String()
}

func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", address(port))
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// WithPort calls start with a free port, and again with another one if the program found that another process uses
// it.
func WithPort(ctx context.Context, start func(ctx context.Context, port int) error) error {
	for attempt := 1; ; attempt++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		if err = start(ctx, port); attempt == 5 || !isTaken(err) {
			return err
		}
	}
}

// isTaken reports whether a program ended because another process uses its port.
func isTaken(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit) && strings.Contains(exit.Tail, "address already in use")
}

// claimPort reserves a port without a listener for this process.
func claimPort(port int) bool {
	taken.Lock()
	defer taken.Unlock()
	if taken.ports[port] {
		return false
	}
	listener, err := listen(port)
	if err != nil {
		return false
	}
	_ = listener.Close()
	taken.ports[port] = true
	return true
}
