package helmrelease

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"
)

const (
	// unpackedLimit is for time, in bytes: a Secret's 768 KiB of gzip unpack to ten or twenty times
	// as much for real charts, and to a thousand times for a bomb.
	unpackedLimit = 64 << 20
	// rewrittenLimit bounds a release that is packed again, which takes ten times as long.
	rewrittenLimit = 64 << 20
	// partLimit bounds the parts that are kept in memory, in bytes: Helm's info with its notes.
	partLimit = 2 << 20
	// mostSteps bounds names, values, escapes and separators, each of which takes time. The densest
	// charts, dashboards of JSON inside of JSON, have one in five bytes: 40 MiB of them.
	mostSteps  = 8 << 20
	mostLevels = 1 << 10
)

// unpacking lets one release be unpacked at a time: a user cluster can have many slow ones.
var unpacking = semaphore.NewWeighted(1)

// walker walks through the JSON of a release while it is unpacked, in time in proportion to the bytes, and keeps only
// the requested parts. Invalid JSON ends the walk where it is read.
type walker struct {
	in *bufio.Reader
	// out gets every byte that is walked over; it may be nil.
	out io.Writer
	// kept gets them too, up to partLimit; it may be nil.
	kept  *bytes.Buffer
	steps int
}

func open(ctx context.Context, data []byte, limit int64) (*walker, error) {
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("unpacking a Helm release: %w", err)
	}
	return &walker{in: bufio.NewReaderSize(&limited{ctx: ctx, in: unpacked, left: limit, limit: limit}, 64<<10)}, nil
}

// limited fails beyond a number of bytes, or when its context ended.
type limited struct {
	ctx         context.Context
	in          io.Reader
	left, limit int64
}

func (l *limited) Read(into []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	count, err := l.in.Read(into)
	if l.left -= int64(count); l.left < 0 {
		return 0, &tooLargeError{Limit: l.limit}
	}
	return count, err
}

type tooLargeError struct{ Limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the Helm release unpacks to more than %d MiB", e.Limit>>20)
}

type noReleaseError struct{ problem string }

func (e *noReleaseError) Error() string { return "this is not a Helm release: " + e.problem }

// peek returns the next bytes, at least one.
func (w *walker) peek() ([]byte, error) {
	if w.in.Buffered() == 0 {
		if _, err := w.in.Peek(1); err != nil {
			if err == io.EOF {
				return nil, io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return w.in.Peek(w.in.Buffered())
}

func (w *walker) skip(bytes []byte) error {
	if w.out != nil {
		if _, err := w.out.Write(bytes); err != nil {
			return err
		}
	}
	if w.kept != nil {
		if w.kept.Len()+len(bytes) > partLimit {
			return &noReleaseError{"a part of it is larger than the limit"}
		}
		w.kept.Write(bytes)
	}
	_, err := w.in.Discard(len(bytes))
	return err
}

func (w *walker) one() error {
	char, err := w.in.Peek(1)
	if err != nil {
		return err
	}
	return w.skip(char)
}

// next returns the next byte that is no space, and does not skip it.
func (w *walker) next() (byte, error) {
	for {
		chunk, err := w.peek()
		if err != nil {
			return 0, err
		}
		rest := bytes.TrimLeft(chunk, " \t\r\n")
		if err := w.skip(chunk[:len(chunk)-len(rest)]); err != nil || len(rest) > 0 {
			return first(rest), err
		}
	}
}

func first(bytes []byte) byte {
	if len(bytes) == 0 {
		return 0
	}
	return bytes[0]
}

// is skips the next byte that is no space if it is this one.
func (w *walker) is(char byte) (bool, error) {
	have, err := w.next()
	if err != nil || have != char {
		return false, err
	}
	return true, w.one()
}

func (w *walker) must(char byte) error {
	found, err := w.is(char)
	if err == nil && !found {
		return &noReleaseError{fmt.Sprintf("%q is missing", char)}
	}
	return err
}

// members walks through an object; member has to walk over each value.
func (w *walker) members(member func(key string) error) error {
	return w.elements('{', '}', func() error {
		key, err := w.capture(w.value)
		if err != nil {
			return err
		}
		name, err := strconv.Unquote(string(key))
		if err != nil {
			return &noReleaseError{"a name in it is not valid"}
		}
		if err := w.must(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// elements walks through a list, or an object; null has none.
func (w *walker) elements(begin, end byte, element func() error) error {
	if char, err := w.next(); err != nil || char == 'n' {
		return firstError(err, w.value)
	}
	if err := w.must(begin); err != nil {
		return err
	}
	if ended, err := w.is(end); err != nil || ended {
		return err
	}
	for {
		if err := firstError(w.step(), element); err != nil {
			return err
		}
		more, err := w.is(',')
		if err != nil {
			return err
		}
		if !more {
			return w.must(end)
		}
	}
}

func (w *walker) step() error {
	if w.steps++; w.steps > mostSteps {
		return &noReleaseError{"it has more parts than the limit"}
	}
	return nil
}

func firstError(err error, otherwise func() error) error {
	if err != nil {
		return err
	}
	return otherwise()
}

// capture returns the bytes of a walk, without leading spaces.
func (w *walker) capture(walk func() error) ([]byte, error) {
	if _, err := w.next(); err != nil {
		return nil, err
	}
	w.kept = &bytes.Buffer{}
	defer func() { w.kept = nil }()
	err := walk()
	return w.kept.Bytes(), err
}

func (w *walker) value() error {
	for depth := 0; ; {
		char, err := w.next()
		if err == nil {
			err = w.step()
		}
		if err != nil {
			return err
		}
		switch char {
		case '"':
			err = w.text(nil)
		case '{', '[':
			depth++
			err = w.one()
		case '}', ']':
			depth--
			err = w.one()
		case ',', ':':
			err = w.one()
		default:
			err = w.word()
		}
		if err != nil || depth <= 0 {
			return err
		}
		if depth > mostLevels {
			return &noReleaseError{"it is deeper than the limit"}
		}
	}
}

func (w *walker) word() error {
	for {
		chunk, err := w.peek()
		if err != nil {
			return err
		}
		end := bytes.IndexAny(chunk, ",:]}[{\" \t\r\n")
		if end == 0 {
			return nil
		}
		if end < 0 {
			end = len(chunk)
		}
		if err := w.skip(chunk[:end]); err != nil {
			return err
		}
	}
}

// text walks over a string and decodes it into a writer, which may be nil.
func (w *walker) text(into io.Writer) error {
	if err := w.must('"'); err != nil {
		return err
	}
	for {
		chunk, err := w.peek()
		if err != nil {
			return err
		}
		end := bytes.IndexAny(chunk, `"\`)
		if end < 0 {
			end = len(chunk)
		}
		plain, rest := chunk[:end], first(chunk[end:])
		if into != nil {
			if _, err := into.Write(plain); err != nil {
				return err
			}
		}
		if err := w.skip(plain); err != nil {
			return err
		}
		switch rest {
		case '"':
			return w.one()
		case '\\':
			if err := w.escape(into); err != nil {
				return err
			}
		}
	}
}

func (w *walker) escape(into io.Writer) error {
	if err := w.step(); err != nil {
		return err
	}
	after, err := w.in.Peek(2)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	var char rune
	size := 2
	switch after[1] {
	case '"', '\\', '/':
		char = rune(after[1])
	case 'b', 'f', 'n', 'r', 't':
		char = rune("\b\f\n\r\t"[strings.IndexByte("bfnrt", after[1])])
	case 'u':
		if char, size, err = w.unicode(); err != nil {
			return err
		}
	default:
		return &noReleaseError{"a string in it has an unknown escape"}
	}
	escaped, err := w.in.Peek(size)
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if err := w.skip(escaped); err != nil || into == nil {
		return err
	}
	_, err = into.Write(utf8.AppendRune(nil, char))
	return err
}

// unicode reads \uXXXX, or two of them that are one character.
func (w *walker) unicode() (char rune, size int, err error) {
	const one = len(`\uXXXX`)
	char, err = w.hex(0)
	if err != nil || !utf16.IsSurrogate(char) {
		return char, one, err
	}
	if low, err := w.hex(one); err == nil {
		if pair := utf16.DecodeRune(char, low); pair != utf8.RuneError {
			return pair, 2 * one, nil
		}
	}
	return utf8.RuneError, one, nil
}

func (w *walker) hex(at int) (rune, error) {
	const one = len(`\uXXXX`)
	peeked, err := w.in.Peek(at + one)
	if err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	if peeked[at] != '\\' || peeked[at+1] != 'u' {
		return 0, &noReleaseError{"a string in it has an incomplete surrogate pair"}
	}
	number, err := strconv.ParseUint(string(peeked[at+2:at+one]), 16, 16)
	if err != nil {
		return 0, &noReleaseError{"a string in it has an unknown escape"}
	}
	return rune(number), nil
}
