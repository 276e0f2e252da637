package revision

import (
	"bytes"

	"github.com/trellis-addons/trellis/pkg/ownership"
)

// scanner counts what a record would become when it is decoded, without decoding any of it. A text can be decoded to a thousand
// times of its size: "{}," is an entry. Objects, hooks' objects and fields stay text, and only their depth counts. Keys are
// compared as they stand: what is written in another way counts with all the rest.
type scanner struct {
	plain []byte
	at    int
	depth int
	// last is the string that was read last, section the key at the top that we are below, and member that of an element in it.
	last, section, member []byte

	pieces, objects, entries, hooks int
}

// scan says what is wrong with a record's size; "" is nothing.
func scan(plain []byte) (problem string) {
	s := scanner{plain: plain}
	for ; s.at < len(plain); s.at++ {
		switch plain[s.at] {
		case '"':
			s.text()
		case ':':
			s.key()
		case '{', '[':
			s.depth++
			s.count()
		case ',':
			s.count()
		case '}', ']':
			s.depth--
		}
		if s.isOver() {
			return "has more in it than is written"
		}
	}
	return ""
}

func (s *scanner) isOver() bool {
	return s.depth > maxLevels || s.pieces > maxPieces || s.objects > ownership.MaxObjects || s.entries > maxEntries || s.hooks > maxHooks
}

func (s *scanner) text() {
	begin := s.at + 1
	for s.at++; s.at < len(s.plain) && s.plain[s.at] != '"'; s.at++ {
		if s.plain[s.at] == '\\' {
			s.at++
		}
	}
	s.last = s.plain[min(begin, len(s.plain)):min(s.at, len(s.plain))]
}

func (s *scanner) key() {
	switch s.depth {
	case 1:
		s.section, s.member = s.last, nil
	case 3:
		s.member = s.last
	}
}

// count counts what begins here: an element of a list, a member of a map.
func (s *scanner) count() {
	if s.isText() {
		return
	}
	s.pieces++
	if s.depth != 2 {
		return
	}
	switch string(s.section) {
	case "objects":
		s.objects++
	case "inventory", "superseded":
		s.entries++
	case "hooks":
		s.hooks++
	}
}

// isText says whether what begins here is kept as it stands.
func (s *scanner) isText() bool {
	switch string(s.section) {
	case "objects":
		return s.depth > 2
	case "hooks":
		return s.depth > 3 && bytes.Equal(s.member, []byte("object"))
	case "inventory", "superseded":
		return s.depth > 3 && bytes.Equal(s.member, []byte("fields"))
	}
	return false
}
