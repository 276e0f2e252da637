package child

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/trellis-addons/trellis/pkg/render"
)

// kind is the kind of a frame's payload.
type kind byte

// Kinds of frames from the parent.
const (
	kindRequest kind = 'R' // request as JSON; content follows, up to kindEnd
	kindFound   kind = 'L' // one object that function lookup finds, as JSON; before the content
	kindFile    kind = 'F' // one file: length of its path, then path and bytes
	kindOmitted kind = 'B' // the path of a file that is larger than any renderer accepts
	kindEnd     kind = 'E' // no further frames; also of an answer
)

// Kinds of frames from the child.
const (
	kindReady    kind = 'H' // the first frame: the result of the child's confinement, as JSON
	kindObject   kind = 'O' // one object as JSON
	kindChart    kind = 'C' // a chart's description, as JSON
	kindHook     kind = 'K' // one hook of a chart as JSON, after the chart
	kindManifest kind = 'M' // the chart's manifest as text
	kindValues   kind = 'V' // values as JSON
	kindFailure  kind = 'X' // the reason why there is no result, as JSON; ends the answer
)

// frameHeader is the kind and the payload's length, big-endian.
const frameHeader = 5

// limits are the maximum sizes of frames by kind, in bytes; other kinds are refused.
type limits map[kind]int

// writeFrame writes one frame whose payload is in parts.
func writeFrame(writer io.Writer, kind kind, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	header := binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(size))
	for _, part := range append([][]byte{header}, parts...) {
		if _, err := writer.Write(part); err != nil {
			return fmt.Errorf("writing a frame of kind %q: %w", kind, err)
		}
	}
	return nil
}

// frames reads frames within limits, for each and for all together.
type frames struct {
	reader io.Reader
	limits limits
	// left is the maximum size of all further payloads together, in bytes.
	left int
}

// next returns the next frame. An end within a frame is io.ErrUnexpectedEOF, otherwise io.EOF.
func (f *frames) next() (kind, []byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(f.reader, header[:]); err != nil {
		return 0, nil, err
	}
	kind, size := kind(header[0]), binary.BigEndian.Uint32(header[1:])
	most, known := f.limits[kind]
	switch {
	case !known:
		return 0, nil, &render.ProtocolError{Problem: fmt.Sprintf("a frame of kind %q", kind)}
	case uint64(size) > uint64(most):
		return 0, nil, &render.ProtocolError{Problem: fmt.Sprintf("a frame of kind %q with more than %d bytes", kind, most)}
	case uint64(size) > uint64(f.left):
		return 0, nil, &render.ProtocolError{Problem: "it has more bytes than allowed"}
	}
	f.left -= int(size)
	payload, err := readGrowing(f.reader, int(size))
	return kind, payload, err
}

// eager is the part of a payload that is allocated before any of it has arrived, in bytes.
const eager = 64 << 10

// readGrowing reads exactly size bytes. Memory grows as they arrive: the length is not trusted.
func readGrowing(reader io.Reader, size int) ([]byte, error) {
	payload := make([]byte, 0, min(size, eager))
	for len(payload) < size {
		if len(payload) == cap(payload) {
			grown := make([]byte, len(payload), min(size, 4*cap(payload)))
			copy(grown, payload)
			payload = grown
		}
		read, err := io.ReadFull(reader, payload[len(payload):cap(payload)])
		payload = payload[:len(payload)+read]
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return payload, nil
}
