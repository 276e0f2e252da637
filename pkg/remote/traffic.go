package remote

import (
	"context"
	"net"
	"sync"
	"time"
)

// What a server may send beyond the bodies that are read: frames, headers, pings. It costs us work, and nothing else bounds it.
const (
	// slack is the most that it may be ahead; what waits in the connection's own buffers is in it.
	slack = 4 * mebi
	// slackEachSecond comes back with time, slackEachCall with a call.
	slackEachSecond = 16 * kibi
	slackEachCall   = 32 * kibi
	// connectionBuffer and streamBuffer are what a server may send before we read.
	connectionBuffer = 2 * mebi
	streamBuffer     = 512 * kibi
	// windowBytes is the most that all bodies may have in a window.
	windowBytes = 512 * mebi
	window      = time.Minute
)

// traffic compares what comes in with what was asked for.
type traffic struct {
	mutex sync.Mutex
	// left of the slack, and when it was last added to.
	left int64
	at   time.Time
	// bytes of bodies since the window began.
	bytes int64
	began time.Time
}

func newTraffic(now time.Time) *traffic { return &traffic{left: slack, at: now, began: now} }

// heard takes bytes off that came in, and says whether there were too many.
func (t *traffic) heard(bytes int, now time.Time) (tooMany bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if gone := now.Sub(t.at); gone >= time.Second {
		t.add(int64(gone/time.Second) * slackEachSecond)
		t.at = now
	}
	t.left -= int64(bytes)
	return t.left < 0
}

// called makes room for the headers of an answer.
func (t *traffic) called() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.add(slackEachCall)
}

// read makes up for bytes of a body, with an eighth for frames, and says whether there were too many of them in this window.
func (t *traffic) read(bytes int, now time.Time) (tooMany bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.add(int64(bytes) + int64(bytes)/8)
	if now.Sub(t.began) > window {
		t.bytes, t.began = 0, now
	}
	t.bytes += int64(bytes)
	return t.bytes > windowBytes
}

func (t *traffic) add(bytes int64) { t.left = min(slack, t.left+bytes) }

// gauge is a connection below TLS that counts what comes in, and closes when nothing explains it.
type gauge struct {
	net.Conn
	client *Client
}

func (g *gauge) Read(buffer []byte) (int, error) {
	n, err := g.Conn.Read(buffer)
	if n > 0 && g.client.traffic.heard(n, time.Now()) {
		_ = g.Conn.Close()
		misbehaves := &MisbehavesError{Did: "it sends megabytes that nobody asked for"}
		g.client.report(context.Background(), misbehaves)
		return 0, misbehaves
	}
	return n, err
}
