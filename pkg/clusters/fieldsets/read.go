package fieldsets

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxFieldsDepth is deeper than the paths of any real object.
const maxFieldsDepth = 128

var errNoFieldSet = errors.New("no field set")

// fieldReader reads a field set (fieldsV1) token by token. The library takes quadratic time for unsorted fields, and
// builds sets even to find one field.
type fieldReader struct {
	tokens *json.Decoder
	depth  int
}

func newFieldReader(raw []byte) fieldReader {
	tokens := json.NewDecoder(bytes.NewReader(raw))
	tokens.UseNumber()
	return fieldReader{tokens: tokens}
}

// keys calls back for each key of an object; the callback reads its value. Null has none.
func (r *fieldReader) keys(each func(key string) error) error {
	token, err := r.tokens.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('{') || r.depth == maxFieldsDepth {
		return errNoFieldSet
	}
	r.depth++
	for r.tokens.More() {
		token, err := r.tokens.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return errNoFieldSet
		}
		if err := each(key); err != nil {
			return err
		}
	}
	r.depth--
	_, err = r.tokens.Token()
	return err
}

func (r *fieldReader) skip() error {
	for open := 0; ; {
		token, err := r.tokens.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return nil
		}
	}
}

func (r *fieldReader) end() error {
	if _, err := r.tokens.Token(); !errors.Is(err, io.EOF) {
		return errNoFieldSet
	}
	return nil
}

// below reads the elements below a path, and whether the path is a field; unknown ones are skipped.
func (r *fieldReader) below(each func(element fieldpath.PathElement) error) (isField bool, err error) {
	isField, bare := false, true
	err = r.keys(func(key string) error {
		if key == "." {
			isField = true
			return r.skip()
		}
		element, err := fieldpath.DeserializePathElement(key)
		if errors.Is(err, fieldpath.ErrUnknownPathElementType) {
			return r.skip()
		}
		if err != nil {
			return err
		}
		bare = false
		return each(element)
	})
	return isField || bare, err
}

// Parse reads a field set; an unreadable one is empty.
func Parse(raw []byte) *fieldpath.Set {
	set, err := Read(raw)
	if err != nil {
		return fieldpath.NewSet()
	}
	return set
}

// Read reads a field set; an empty text is an empty one.
func Read(raw []byte) (*fieldpath.Set, error) {
	if len(raw) == 0 {
		return fieldpath.NewSet(), nil
	}
	if !utf8.Valid(raw) {
		return nil, errNoFieldSet
	}
	reader := newFieldReader(raw)
	set, _, err := reader.set()
	if err != nil {
		return nil, err
	}
	if set == nil {
		set = fieldpath.NewSet()
	}
	return set, reader.end()
}

// set reads a set, nil if it is empty, and says whether its own path is a field.
func (r *fieldReader) set() (set *fieldpath.Set, isField bool, err error) {
	type branch struct {
		element fieldpath.PathElement
		isField bool
		set     *fieldpath.Set
	}
	var branches []branch
	isField, err = r.below(func(element fieldpath.PathElement) error {
		below, isField, err := r.set()
		branches = append(branches, branch{element, isField, below})
		return err
	})
	if err != nil || len(branches) == 0 {
		return nil, isField, err
	}
	slices.SortStableFunc(branches, func(a, b branch) int { return a.element.Compare(b.element) })
	set = &fieldpath.Set{}
	for _, one := range branches { // in order, each is appended without moving any
		if one.isField {
			set.Members.Insert(one.element)
		}
		if one.set != nil {
			*set.Children.Descend(one.element) = *one.set
		}
	}
	return set, isField, nil
}

// search returns the wanted fields, sorted and written as in conflicts, that a field set has.
func search(raw []byte, wanted []string) []string {
	walk := &fieldSearch{fieldReader: newFieldReader(raw), wanted: wanted}
	if walk.walk() != nil || walk.end() != nil {
		return nil
	}
	return walk.found
}

type fieldSearch struct {
	fieldReader
	wanted []string
	path   []byte
	found  []string
}

func (s *fieldSearch) walk() error {
	isField, err := s.below(func(element fieldpath.PathElement) error {
		above := len(s.path)
		s.path = append(s.path, element.String()...)
		defer func() { s.path = s.path[:above] }()
		if at := s.next(); at == len(s.wanted) || !strings.HasPrefix(s.wanted[at], string(s.path)) {
			return s.skip()
		}
		return s.walk()
	})
	if at := s.next(); err == nil && isField && at < len(s.wanted) && s.wanted[at] == string(s.path) {
		s.found = append(s.found, s.wanted[at])
	}
	return err
}

// next is the index of the first wanted field that does not sort before the path.
func (s *fieldSearch) next() int {
	at, _ := slices.BinarySearch(s.wanted, string(s.path))
	return at
}
