package hostile

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// flooder is a connection that, in a mode that floods, sends HTTP/2 pings without end between the true frames.
type flooder struct {
	net.Conn
	server *Server
	ended  chan struct{}
	once   sync.Once
	pings  []byte

	mutex sync.Mutex
	// left is the missing part of the frame that is being written, header the known part of its header.
	left   int
	header []byte
	floods bool
}

func newFlooder(connection net.Conn, server *Server) *flooder {
	var block bytes.Buffer
	framer := http2.NewFramer(&block, nil)
	for range 100 {
		_ = framer.WritePing(false, [8]byte{}) // into memory
	}
	return &flooder{Conn: connection, server: server, ended: make(chan struct{}), pings: block.Bytes()}
}

// Write implements net.Conn. It follows the frames' borders, since pings fit only between frames.
func (f *flooder) Write(text []byte) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n, err := f.Conn.Write(text)
	f.follow(text[:n])
	if mode, _ := f.server.now(); mode.floods && !f.floods {
		f.floods = true
		go f.flood()
	}
	return n, err
}

func (f *flooder) follow(text []byte) {
	const headerSize = 9
	for len(text) > 0 {
		if f.left > 0 {
			taken := min(f.left, len(text))
			f.left, text = f.left-taken, text[taken:]
			continue
		}
		taken := min(headerSize-len(f.header), len(text))
		f.header, text = append(f.header, text[:taken]...), text[taken:]
		if len(f.header) == headerSize {
			f.left = int(binary.BigEndian.Uint32(f.header) >> 8)
			f.header = f.header[:0]
		}
	}
}

// betweenBursts is the time for true frames: the client answers every ping, and would do nothing else.
const betweenBursts = time.Millisecond

// flood continues until the connection or the mode ends.
func (f *flooder) flood() {
	ticker := time.NewTicker(betweenBursts)
	defer ticker.Stop()
	for f.burst() {
		select {
		case <-f.ended:
			return
		case <-ticker.C:
		}
	}
}

func (f *flooder) burst() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if mode, _ := f.server.now(); !mode.floods {
		f.floods = false
		return false
	}
	if f.left > 0 || len(f.header) > 0 {
		return true // in the middle of a frame
	}
	f.server.count("bursts of pings")
	_, err := f.Conn.Write(f.pings)
	return err == nil
}

// Close implements net.Conn.
func (f *flooder) Close() error {
	f.once.Do(func() { close(f.ended) })
	return f.Conn.Close()
}
