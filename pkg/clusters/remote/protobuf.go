package remote

import (
	"fmt"
	"strings"
)

// message is an open part of a protobuf answer. Only parts that are decoded one by one are
// distinguished; others cost no more than their bytes. Field numbers are from apimachinery's .proto
// files: runtime.Unknown around PartialObjectMetadata, PartialObjectMetadataList and Status.
type message uint8

const (
	opaque message = iota
	envelope
	typeMeta
	theKind
	listMessage
	itemMessage
	metaMessage
	statusMessage
	detailsMessage
)

// inner are the nested parts by field.
var inner = map[message]map[uint64]message{
	envelope:      {1: typeMeta},
	typeMeta:      {2: theKind},
	listMessage:   {2: itemMessage},
	itemMessage:   {1: metaMessage},
	statusMessage: {5: detailsMessage},
}

// kindsRead are the kinds that clients request.
var kindsRead = map[string]message{
	"PartialObjectMetadata": itemMessage, "PartialObjectMetadataList": listMessage, "Status": statusMessage,
}

const magic = "k8s\x00"

const (
	notProtobuf = "the answer is not protobuf"
	rawField    = 2
	// deepestMessage is more than the levels of kindsRead.
	deepestMessage = 8
)

type wireScanner struct {
	limits limits
	// read is how much of magic was read.
	read int
	// open messages, outermost first, with their remaining bytes and their fields so far.
	depth         int
	open          [deepestMessage]wireMessage
	values, items int
	// tag of the open field, or 0 before a tag; length: its length comes next.
	tag    uint64
	length bool
	// number and shift are an incomplete number; skip is the rest of an ignored field.
	number uint64
	shift  uint
	skip   int64
	// kind by the envelope, and the envelope's fields so far.
	kind strings.Builder
	seen uint64
}

type wireMessage struct {
	message message
	left    int64
	fields  int
}

func newWireScanner(most limits) *wireScanner {
	s := &wireScanner{limits: most}
	s.open[0] = wireMessage{message: envelope, left: 1 << 62}
	return s
}

func (s *wireScanner) cost() (values, items int) { return s.values, s.items }

func (s *wireScanner) end() string {
	if s.depth > 0 || s.skip > 0 || s.tag != 0 || s.shift > 0 || s.read < len(magic) {
		return notProtobuf
	}
	return ""
}

func (s *wireScanner) feed(data []byte) (wrong string) {
	for len(data) > 0 && wrong == "" {
		consumed := 1
		switch {
		case s.read < len(magic):
			if data[0] != magic[s.read] {
				return notProtobuf
			}
			s.read++
		case s.skip > 0:
			consumed = s.pass(data)
		default:
			wrong = s.digit(data[0])
		}
		s.leave()
		data = data[consumed:]
	}
	return wrong
}

// pass skips an ignored field, and records the kind.
func (s *wireScanner) pass(data []byte) int {
	consumed := int(min(int64(len(data)), s.skip))
	if s.open[s.depth].message == theKind {
		s.kind.Write(data[:consumed])
	}
	s.skip -= int64(consumed)
	s.open[s.depth].left -= int64(consumed)
	return consumed
}

// leave ends complete messages.
func (s *wireScanner) leave() {
	for s.depth > 0 && s.open[s.depth].left == 0 && s.skip == 0 && s.tag == 0 && s.shift == 0 {
		s.depth--
	}
}

// digit reads a byte of a number: a tag, a length or a value.
func (s *wireScanner) digit(c byte) string {
	here := &s.open[s.depth]
	if here.left--; here.left < 0 {
		return notProtobuf
	}
	if s.shift > 63 {
		return notProtobuf
	}
	s.number |= uint64(c&0x7f) << s.shift
	s.shift += 7
	if c >= 0x80 {
		return ""
	}
	number := s.number
	s.number, s.shift = 0, 0
	switch {
	case s.tag == 0:
		return s.field(number)
	case s.length:
		return s.enter(number)
	}
	s.tag = 0
	return ""
}

func (s *wireScanner) field(tag uint64) string {
	if tag>>3 == 0 {
		return notProtobuf
	}
	here := &s.open[s.depth]
	s.values++
	here.fields++
	switch {
	case s.values > s.limits.values:
		return fmt.Sprintf("the answer has more than %d values", s.limits.values)
	case here.fields > s.limits.items:
		return fmt.Sprintf("the answer has a list or an object of more than %d", s.limits.items)
	}
	switch tag & 7 {
	case 0:
		s.tag = tag
	case 1:
		return s.over(8)
	case 2:
		s.tag, s.length = tag, true
	case 5:
		return s.over(4)
	default:
		return notProtobuf
	}
	return ""
}

func (s *wireScanner) over(length int64) string {
	if length > s.open[s.depth].left {
		return notProtobuf
	}
	s.tag, s.length, s.skip = 0, false, length
	return ""
}

// enter begins a field with a length: a message, or bytes.
func (s *wireScanner) enter(length uint64) string {
	here, field := &s.open[s.depth], s.tag>>3
	s.tag, s.length = 0, false
	if length > uint64(here.left) {
		return notProtobuf
	}
	next, wrong := s.next(here.message, field)
	switch {
	case wrong != "":
		return wrong
	case next == opaque && length > uint64(s.limits.text):
		return fmt.Sprintf("the answer has a text of more than %d bytes", s.limits.text)
	case next == opaque:
		return s.over(int64(length)) // at most the rest
	}
	here.left -= int64(length)
	s.depth++
	s.open[s.depth] = wireMessage{message: next, left: int64(length)}
	if next == itemMessage && here.message == listMessage {
		s.items++
	}
	if next == theKind {
		s.skip = int64(length)
	}
	return ""
}

// next is the part that a field begins. The envelope has its kind first and only once, so no part is decoded as
// another kind.
func (s *wireScanner) next(in message, field uint64) (message, string) {
	if in != envelope {
		return inner[in][field], ""
	}
	bit := uint64(1) << min(field, 63)
	if s.seen&bit != 0 {
		return opaque, notProtobuf
	}
	s.seen |= bit
	if field != rawField {
		return inner[in][field], ""
	}
	s.seen |= 1 << 1 // a kind after it is one too many
	kind, found := kindsRead[s.kind.String()]
	if !found {
		return opaque, "the answer is of a kind that was not requested"
	}
	return kind, ""
}
