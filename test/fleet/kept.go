package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
)

// Ports stores ports in a file by the name of their server, so that it gets the same port at its next start, if no
// other process uses it. Nil stores nothing.
type Ports struct {
	path  string
	mutex sync.Mutex
	kept  map[string]int
}

// RememberPorts reads the file, if there is one. It replaces one that can't be read.
func RememberPorts(path string) (*Ports, error) {
	p := &Ports{path: path, kept: map[string]int{}}
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the ports of before: %w", err)
	}
	if json.Unmarshal(content, &p.kept) != nil || p.kept == nil {
		p.kept = map[string]int{}
	}
	return p, nil
}

// Free is the previous port, or another one that is free.
func (p *Ports) Free(name string) (int, error) {
	if port := p.before(name); port != 0 && claimPort(port) {
		return port, nil
	}
	port, err := FreePort()
	if err != nil {
		return 0, err
	}
	return port, p.remember(name, port)
}

// With is WithPort, which tries the previous port first.
func (p *Ports) With(ctx context.Context, name string, start func(ctx context.Context, port int) error) error {
	if port := p.before(name); port != 0 && claimPort(port) {
		if err := start(ctx, port); !isTaken(err) {
			return err
		}
	}
	return WithPort(ctx, func(ctx context.Context, port int) error {
		if err := start(ctx, port); err != nil {
			return err
		}
		return p.remember(name, port)
	})
}

// Listen opens a listener on the previous port, or on another one.
func (p *Ports) Listen(name string) (net.Listener, error) {
	if port := p.before(name); port != 0 {
		if listener, err := listen(port); err == nil {
			return listener, nil
		}
	}
	listener, err := Listen()
	if err != nil {
		return nil, err
	}
	return listener, p.remember(name, listener.Addr().(*net.TCPAddr).Port)
}

func (p *Ports) before(name string) int {
	if p == nil {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.kept[name]
}

func (p *Ports) remember(name string, port int) error {
	if p == nil {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.kept[name] = port
	content, err := json.MarshalIndent(p.kept, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering the ports: %w", err)
	}
	return nil
}
