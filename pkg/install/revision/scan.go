package revision

import (
	"bytes"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// scanner counts the values that a record would decode to, without decoding it: a text can become a thousand times
// its size, since "{}," is an entry. Of objects, hooks' objects and fields, which stay texts, only the depth counts.
// Escaped keys count as unknown sections.
type scanner struct {
	plain []byte
	at    int
	depth int
	// last is the last string, section the top-level key, and member the key in an element of it.
	last, section, member []byte

	pieces, objects, entries, hooks int
}

// scan says why a record is too large; "" if it is not.
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
			return "has more content than the limit"
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
