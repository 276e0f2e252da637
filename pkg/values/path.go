package values

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxIndex is the highest list index: a number must not create a huge list (CVE-2022-36055).
const MaxIndex = 1024

// Path leads to a value: spec.replicas, args[0], annotations.example\.com/name. A backslash escapes
// a dot, a bracket or a backslash.
type Path []Step

// Step is a key of a map, or an index of a list.
type Step struct {
	Key     string
	Index   int
	IsIndex bool
}

// PathError describes a problem of a path, or why it leads nowhere.
type PathError struct{ Path, Problem string }

func (e *PathError) Error() string { return fmt.Sprintf("path %q %s", e.Path, e.Problem) }

// ParsePath reads a path of at most MaxDepth steps. The error is a *PathError.
func ParsePath(text string) (Path, error) {
	parser := pathParser{text: text}
	for parser.at < len(text) || len(parser.path) == 0 {
		if err := parser.step(); err != nil {
			return nil, err
		}
		if len(parser.path) > MaxDepth {
			return nil, parser.problem("has more than %d steps", MaxDepth)
		}
	}
	return parser.path, nil
}

type pathParser struct {
	text string
	at   int
	path Path
}

func (p *pathParser) step() error {
	if len(p.path) > 0 && p.text[p.at] == '[' {
		return p.index()
	}
	if len(p.path) > 0 {
		if p.text[p.at] != '.' {
			return p.problem("has something other than a dot after a bracket")
		}
		p.at++
	}
	return p.key()
}

func (p *pathParser) key() error {
	var key strings.Builder
	for ; p.at < len(p.text); p.at++ {
		switch char := p.text[p.at]; char {
		case '.', '[':
			return p.endKey(key.String())
		case ']':
			return p.problem("has a closing bracket without an opening bracket")
		case '\\':
			if p.at++; p.at == len(p.text) {
				return p.problem("ends with a backslash")
			}
			if !strings.ContainsRune(`.[]\`, rune(p.text[p.at])) {
				return p.problem(`has a backslash before something other than ".", "[", "]" and "\"`)
			}
			key.WriteByte(p.text[p.at])
		default:
			key.WriteByte(char)
		}
	}
	return p.endKey(key.String())
}

func (p *pathParser) endKey(key string) error {
	if key == "" {
		return p.problem("has an empty key")
	}
	p.path = append(p.path, Step{Key: key})
	if p.at < len(p.text) && p.text[p.at] == '.' && p.at+1 == len(p.text) {
		return p.problem("ends with a dot")
	}
	return nil
}

func (p *pathParser) index() error {
	digits, _, closed := strings.Cut(p.text[p.at+1:], "]")
	if !closed {
		return p.problem("has a bracket that is not closed")
	}
	index, err := strconv.Atoi(digits)
	if err != nil || index < 0 || strconv.Itoa(index) != digits {
		return p.problem("has an index that is not a whole number")
	}
	if index > MaxIndex {
		return p.problem("has an index above %d", MaxIndex)
	}
	p.path = append(p.path, Step{Index: index, IsIndex: true})
	p.at += len(digits) + 2
	return nil
}

func (p *pathParser) problem(format string, args ...any) error {
	return &PathError{Path: p.text, Problem: fmt.Sprintf(format, args...)}
}

var keyEscapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `]`, `\]`)

func (p Path) String() string {
	var text strings.Builder
	for i, step := range p {
		switch {
		case step.IsIndex:
			fmt.Fprintf(&text, "[%d]", step.Index)
			continue
		case i > 0:
			text.WriteByte('.')
		}
		text.WriteString(keyEscapes.Replace(step.Key))
	}
	return text.String()
}

func (p Path) key(key string) Path {
	return append(slices.Clip(p), Step{Key: key})
}

// Get follows the path. A *PathError says that a plain value blocks the path.
func (p Path) Get(values map[string]any) (value any, found bool, err error) {
	value = values
	for i, step := range p {
		if value == nil {
			return nil, false, nil
		}
		switch container := value.(type) {
		case map[string]any:
			if step.IsIndex {
				return nil, false, p.blocked(i, "list")
			}
			value, found = container[step.Key]
		case []any:
			if !step.IsIndex {
				return nil, false, p.blocked(i, "map")
			}
			found = step.Index < len(container)
			if value = nil; found {
				value = container[step.Index]
			}
		default:
			return nil, false, p.blocked(i, "map or list")
		}
		if !found {
			return nil, false, nil
		}
	}
	return value, true, nil
}

func (p Path) blocked(at int, wanted string) error {
	return &PathError{Path: p.String(), Problem: fmt.Sprintf("leads through %q, which is not a %s", p[:at].String(), wanted)}
}

// Set sets a value and creates the maps and lists on its path, with null for unset places of lists. The error is a
// *PathError.
func (p Path) Set(values map[string]any, value any) error {
	_, err := p.set(values, 0, value)
	return err
}

func (p Path) set(container any, i int, value any) (any, error) {
	if i == len(p) {
		return value, nil
	}
	step := p[i]
	if step.IsIndex {
		return p.setInList(container, i, value)
	}
	if container == nil {
		container = map[string]any{}
	}
	entries, ok := container.(map[string]any)
	if !ok {
		return nil, p.blocked(i, "map")
	}
	child, err := p.set(entries[step.Key], i+1, value)
	if err != nil {
		return nil, err
	}
	entries[step.Key] = child
	return entries, nil
}

func (p Path) setInList(container any, i int, value any) (any, error) {
	list, ok := container.([]any)
	if container != nil && !ok {
		return nil, p.blocked(i, "list")
	}
	index := p[i].Index
	for len(list) <= index {
		list = append(list, nil)
	}
	child, err := p.set(list[index], i+1, value)
	if err != nil {
		return nil, err
	}
	list[index] = child
	return list, nil
}
