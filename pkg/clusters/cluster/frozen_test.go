package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// freezer is a proxy in front of an API server. Frozen, it keeps connections open and forwards nothing, like a
// stopped process or a network that drops packets.
type freezer struct {
	listener net.Listener
	target   string

	mutex  sync.Mutex
	thawed chan struct{} // closed while it forwards
	conns  []net.Conn
}

func newFreezer(t *testing.T, target string) *freezer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	f := &freezer{listener: listener, target: target, thawed: make(chan struct{})}
	f.thaw()
	go f.serve()
	t.Cleanup(f.close)
	return f
}

func (f *freezer) freeze() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.thawed = make(chan struct{})
}

func (f *freezer) thaw() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	close(f.thawed)
}

func (f *freezer) gate() <-chan struct{} {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.thawed
}

func (f *freezer) close() {
	f.listener.Close()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, conn := range f.conns {
		conn.Close()
	}
}

func (f *freezer) serve() {
	for {
		near, err := f.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", f.target)
		if err != nil {
			near.Close()
			continue
		}
		f.mutex.Lock()
		f.conns = append(f.conns, near, far)
		f.mutex.Unlock()
		go f.pass(near, far)
		go f.pass(far, near)
	}
}

func (f *freezer) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-f.gate()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}

func TestFrozenServerComesBack(t *testing.T) {
	user := fleet.Shared().Cluster("user")
	frozen := newFreezer(t, user.URL()[len("https://"):])
	p := newPlace(t, "frozen")
	p.keep("internal-admin-kubeconfig", replaced(t, user.Kubeconfig, user.URL(), "https://"+frozen.listener.Addr().String()))
	c := p.connections()
	connection := p.live(c)

	frozen.freeze()
	begin := time.Now()
	if err := call(t, connection); err == nil {
		t.Fatal("a frozen server answered")
	}
	if took := time.Since(begin); took > headerTimeout+idlePing+pingTimeout {
		t.Errorf("the first call was held for %s", took)
	}
	p.refused(c, v1.ReasonClusterUnreachable)
	begin = time.Now()
	for range 100 {
		if err := call(t, connection); err == nil {
			t.Fatal("a frozen server answered")
		}
	}
	if took := time.Since(begin); took >= headerTimeout { // a call that was sent would wait that long
		t.Errorf("100 calls to a cluster that is known to be dead took %s", took)
	}

	frozen.thaw()
	connection = p.live(c)
	expect.Eventually(t, expect.Patience, func() error { return call(t, connection) })
}
