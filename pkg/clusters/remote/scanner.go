package remote

import "fmt"

// deepest is the largest depth of all limits.
const deepest = 128

const numberLimit = 512

// place is a scanner's state in the grammar of JSON.
type place uint8

const (
	wantValue place = iota
	wantValueOrEnd
	wantName
	wantNameOrEnd
	wantColon
	afterValue
	inText
	inName
	inWord
	// Places in a number; atMinus, atPoint, atExponent and atSign need a digit.
	atMinus
	atZero
	inWhole
	atPoint
	inFraction
	atExponent
	atSign
	inExponent
)

const notJSON = "the answer is not JSON"

// scanner checks that JSON in pieces is complete and within limits, in linear time and constant
// memory. It accepts what encoding/json accepts.
type scanner struct {
	limits limits
	place  place
	// depth is the number of open objects and lists; lists marks the lists, counts has their sizes.
	depth  int
	lists  [deepest + 1]bool
	counts [deepest + 1]int32
	// values so far, and items: the elements of lists in the outermost object.
	values, items int
	length        int
	// escape is 1 after a backslash, and in \u 1 more than the missing hexadecimal digits.
	escape int
	// word is the missing part of true, false or null.
	word string
}

func (s *scanner) cost() (values, items int) { return s.values, s.items }

// feed checks the next piece and returns the problem, or "".
func (s *scanner) feed(data []byte) (wrong string) {
	for len(data) > 0 && wrong == "" {
		consumed := 1
		switch {
		case s.place == inText || s.place == inName:
			consumed, wrong = s.text(data)
		case s.place == inWord:
			wrong = s.letter(data[0])
		case s.place >= atMinus:
			consumed, wrong = s.number(data)
		case isSpace(data[0]):
		default:
			wrong = s.structure(data[0])
		}
		data = data[consumed:]
	}
	return wrong
}

// end checks that the JSON is complete.
func (s *scanner) end() string {
	if s.depth > 0 || s.place != afterValue && !isWhole(s.place) {
		return notJSON
	}
	return ""
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// structure reads a byte between texts, words and numbers.
func (s *scanner) structure(c byte) string {
	switch s.place {
	case wantValue, wantValueOrEnd:
		if c == ']' && s.place == wantValueOrEnd {
			return s.close(true)
		}
		return s.value(c)
	case wantName, wantNameOrEnd:
		switch {
		case c == '"':
			return s.name()
		case c == '}' && s.place == wantNameOrEnd:
			return s.close(false)
		}
	case wantColon:
		if c == ':' {
			s.place = wantValue
			return ""
		}
	case afterValue:
		return s.separator(c)
	}
	return notJSON
}

func (s *scanner) separator(c byte) string {
	if s.depth == 0 {
		return notJSON
	}
	switch {
	case c == ',' && s.lists[s.depth]:
		s.place = wantValue
	case c == ',':
		s.place = wantName
	case c == ']' || c == '}':
		return s.close(c == ']')
	default:
		return notJSON
	}
	return ""
}

func (s *scanner) value(c byte) string {
	if s.values++; s.values > s.limits.values {
		return fmt.Sprintf("the answer has more than %d values", s.limits.values)
	}
	if s.lists[s.depth] {
		if s.depth == 2 {
			s.items++
		}
		if wrong := s.count(); wrong != "" {
			return wrong
		}
	}
	s.length = 0
	switch c {
	case '{':
		return s.open(false)
	case '[':
		return s.open(true)
	case '"':
		s.place = inText
	case 't':
		s.place, s.word = inWord, "rue"
	case 'f':
		s.place, s.word = inWord, "alse"
	case 'n':
		s.place, s.word = inWord, "ull"
	case '-':
		s.place = atMinus
	case '0':
		s.place = atZero
	default:
		if !isDigit(c) {
			return notJSON
		}
		s.place = inWhole
	}
	return ""
}

func (s *scanner) count() string {
	if s.counts[s.depth]++; int(s.counts[s.depth]) > s.limits.items {
		return fmt.Sprintf("the answer has a list or an object of more than %d", s.limits.items)
	}
	return ""
}

func (s *scanner) name() string {
	s.place, s.length = inName, 0
	return s.count()
}

func (s *scanner) open(list bool) string {
	if s.depth == s.limits.depth {
		return fmt.Sprintf("the answer is more than %d levels deep", s.limits.depth)
	}
	s.depth++
	s.lists[s.depth], s.counts[s.depth] = list, 0
	s.place = wantNameOrEnd
	if list {
		s.place = wantValueOrEnd
	}
	return ""
}

func (s *scanner) close(list bool) string {
	if s.lists[s.depth] != list {
		return notJSON
	}
	s.depth--
	s.place = afterValue
	return ""
}

func (s *scanner) letter(c byte) string {
	if c != s.word[0] {
		return notJSON
	}
	if s.word = s.word[1:]; s.word == "" {
		s.place = afterValue
	}
	return ""
}

// ordinary are bytes without special meaning in a text.
var ordinary = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return table
}()

func (s *scanner) text(data []byte) (consumed int, wrong string) {
	for consumed < len(data) {
		if s.escape > 0 {
			if !s.escaped(data[consumed]) {
				return consumed, notJSON
			}
			consumed++
			continue
		}
		begin := consumed
		for consumed < len(data) && ordinary[data[consumed]] {
			consumed++
		}
		s.length += consumed - begin
		if wrong := s.tooLong(); wrong != "" || consumed == len(data) {
			return consumed, wrong
		}
		switch data[consumed] {
		case '"':
			s.endText()
			return consumed + 1, ""
		case '\\':
			s.escape = 1
			s.length++
		default:
			return consumed, notJSON
		}
		consumed++
	}
	return consumed, ""
}

func (s *scanner) endText() {
	if s.place == inName {
		s.place = wantColon
		return
	}
	s.place = afterValue
}

// escaped reads a byte after a backslash.
func (s *scanner) escaped(c byte) bool {
	s.length++
	if s.escape > 1 {
		s.escape--
		if s.escape == 1 {
			s.escape = 0
		}
		return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	}
	s.escape = 0
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		s.escape = 5
		return true
	}
	return false
}

func (s *scanner) tooLong() string {
	switch {
	case s.place == inName && s.length > s.limits.name:
		return fmt.Sprintf("the answer has a name of more than %d bytes", s.limits.name)
	case s.place == inText && s.length > s.limits.text:
		return fmt.Sprintf("the answer has a text of more than %d bytes", s.limits.text)
	}
	return ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWhole says whether a number may end here.
func isWhole(at place) bool {
	return at == atZero || at == inWhole || at == inFraction || at == inExponent
}

// number reads a number, without the byte that ends it.
func (s *scanner) number(data []byte) (consumed int, wrong string) {
	for ; consumed < len(data); consumed++ {
		next, goesOn := step(s.place, data[consumed])
		if !goesOn {
			if !isWhole(s.place) {
				return consumed, notJSON
			}
			s.place = afterValue
			return consumed, ""
		}
		s.place = next
		if s.length++; s.length > numberLimit {
			return consumed, fmt.Sprintf("the answer has a number of more than %d bytes", numberLimit)
		}
	}
	return consumed, ""
}

// step is the next place in a number; false: the byte does not belong to it.
func step(at place, c byte) (next place, goesOn bool) {
	switch {
	case isDigit(c):
		return afterDigit(at, c)
	case c == '.' && (at == atZero || at == inWhole):
		return atPoint, true
	case (c == 'e' || c == 'E') && (at == atZero || at == inWhole || at == inFraction):
		return atExponent, true
	case (c == '+' || c == '-') && at == atExponent:
		return atSign, true
	}
	return at, false
}

func afterDigit(at place, c byte) (next place, goesOn bool) {
	switch at {
	case atZero:
		return at, false
	case atMinus:
		if c == '0' {
			return atZero, true
		}
		return inWhole, true
	case atPoint:
		return inFraction, true
	case atExponent, atSign:
		return inExponent, true
	}
	return at, true
}
