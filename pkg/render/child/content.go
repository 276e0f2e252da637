package child

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
)

// Limits of sent content. Of larger files only the name is sent: a renderer may not need their content.
const (
	maxFileBytes    = 16<<20 + 1
	maxContentBytes = 64<<20 + 1
	maxFiles        = 20_000
	maxPathBytes    = 4096
)

// Wants reports whether a renderer reads a file. Others are not sent.
type Wants func(path string) bool

// AllFiles wants every file.
func AllFiles(string) bool { return true }

// sendContent writes the selected regular files, in lexical order. Links are not followed.
func sendContent(writer *bufio.Writer, content fs.FS, wants Wants) error {
	left, count := int64(maxContentBytes), 0
	err := fs.WalkDir(content, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !wants(path) {
			return err
		}
		if count++; count > maxFiles {
			return &render.LimitError{What: "files", Max: maxFiles}
		}
		if len(path) > maxPathBytes {
			return &render.LimitError{What: "bytes in a path", Max: maxPathBytes}
		}
		sent, err := sendFile(writer, content, path, min(left, maxFileBytes))
		left -= sent
		return err
	})
	if err != nil {
		return err
	}
	return writeFrame(writer, kindEnd)
}

// sendFile writes one file, or only its name if it exceeds the bytes that are left.
func sendFile(writer *bufio.Writer, content fs.FS, path string, left int64) (int64, error) {
	opened, err := content.Open(path)
	if err != nil {
		return 0, fmt.Errorf("opening %q: %w", path, err)
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return 0, fmt.Errorf("looking at %q: %w", path, err)
	}
	size := info.Size()
	if size > left {
		return 0, writeFrame(writer, kindOmitted, []byte(path))
	}
	// The length comes before the bytes, which are copied as they are read.
	header := binary.BigEndian.AppendUint32([]byte{byte(kindFile)}, uint32(2+len(path)+int(size)))
	header = binary.BigEndian.AppendUint16(header, uint16(len(path)))
	if _, err := writer.Write(append(header, path...)); err != nil {
		return 0, fmt.Errorf("writing a file: %w", err)
	}
	written, err := io.Copy(writer, io.LimitReader(opened, size))
	if err == nil && written != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return written, fmt.Errorf("sending %q: %w", path, err)
	}
	return size, nil
}

// receiveContent reads the frames of sendFound and sendContent.
func receiveContent(frames *frames) (fs.FS, []*unstructured.Unstructured, error) {
	received := newMemory()
	var found []*unstructured.Unstructured
	for {
		kind, payload, err := frames.next()
		if err != nil {
			return nil, nil, err
		}
		switch kind {
		case kindEnd:
			return received, found, nil
		case kindFound:
			object := &unstructured.Unstructured{}
			err = json.Unmarshal(payload, &object.Object)
			found = append(found, object)
		case kindOmitted:
			err = received.add(string(payload), nil, true)
		case kindFile:
			err = receiveFile(received, payload)
		default:
			err = &render.ProtocolError{Problem: fmt.Sprintf("a frame of kind %q among files", kind)}
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

func receiveFile(received *memory, payload []byte) error {
	if len(payload) < 2 {
		return &render.ProtocolError{Problem: "a file without a path"}
	}
	length, rest := int(binary.BigEndian.Uint16(payload)), payload[2:]
	if length > len(rest) {
		return &render.ProtocolError{Problem: "a path longer than its frame"}
	}
	return received.add(string(rest[:length]), rest[length:], false)
}
