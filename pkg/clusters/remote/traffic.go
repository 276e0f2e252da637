package remote

import (
	"context"
	"net"
	"sync"
	"time"
)

// Limits of what a server sends in addition to bodies: frames, headers, pings. There is no other bound on them.
const (
	// slack is the most such bytes, including those in the connection's buffers.
	slack = 4 * mebi
	// slackEachSecond and slackEachCall are added with time and calls.
	slackEachSecond = 16 * kibi
	slackEachCall   = 32 * kibi
	// connectionBuffer and streamBuffer are the bytes that a server may send before we read.
	connectionBuffer = 2 * mebi
	streamBuffer     = 512 * kibi
	// windowBytes is the most bytes of all bodies in a window.
	windowBytes = 512 * mebi
	window      = time.Minute
)

// traffic compares received bytes with those of answers.
type traffic struct {
	mutex sync.Mutex
	// left of the slack, and when it was last increased.
	left int64
	at   time.Time
	// bytes of bodies since the window began.
	bytes int64
	began time.Time
}

func newTraffic(now time.Time) *traffic { return &traffic{left: slack, at: now, began: now} }

// received subtracts bytes, and says whether there were too many.
func (t *traffic) received(bytes int, now time.Time) (tooMany bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if passed := now.Sub(t.at); passed >= time.Second {
		t.add(int64(passed/time.Second) * slackEachSecond)
		t.at = now
	}
	t.left -= int64(bytes)
	return t.left < 0
}

func (t *traffic) called() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.add(slackEachCall)
}

// read adds bytes of a body, plus an eighth for frames, and says whether the window has too many.
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

// gauge is a connection below TLS that closes after too many unexplained bytes.
type gauge struct {
	net.Conn
	client *Client
}

func (g *gauge) Read(buffer []byte) (int, error) {
	n, err := g.Conn.Read(buffer)
	if n > 0 && g.client.traffic.received(n, time.Now()) {
		_ = g.Conn.Close()
		misbehaves := &MisbehavesError{Did: "it sends megabytes that were not requested"}
		g.client.report(context.Background(), misbehaves)
		return 0, misbehaves
	}
	return n, err
}
