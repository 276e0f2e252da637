package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Limits of a document.
type Limits struct {
	// Bytes is the most that the document may have, as written and with its aliases written out.
	Bytes int
	// Depth is how many maps and lists may be inside of one another.
	Depth int
	// Pieces is about how many maps, lists and values the document may have as written: commas, brackets, dashes and lines are
	// counted before anything is parsed, in texts too. 0: as many as fit.
	Pieces int
	// Budget is shared with other documents; nil: there are none.
	Budget *Budget
	// Duplicates lets the last of equal keys count, instead of refusing them: what Helm does with charts.
	Duplicates bool
}

// Budget is what several documents may have together, such as those of a folder or of a manifest. It is for one goroutine at a time.
type Budget struct{ most, left int }

// NewBudget makes a budget of bytes, with aliases written out.
func NewBudget(bytes int) *Budget { return &Budget{most: bytes, left: bytes} }

// Error says what is wrong with a document, and where.
type Error struct {
	// Line counts from 1; 0 is unknown.
	Line int
	// Problem never holds a value.
	Problem string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Decode gives the document's content: maps with string keys, lists, strings, booleans, int64, float64 and nil. An empty
// document is nil. Every error is an *Error.
func Decode(data []byte, limits Limits) (any, error) {
	content, _, err := DecodeTree(data, limits)
	return content, err
}

// DecodeTree is Decode, and gives the tree besides, which knows lines; its aliases are not written out. An empty document has none.
func DecodeTree(data []byte, limits Limits) (any, *yamlnodes.Node, error) {
	if len(data) > limits.Bytes {
		return nil, nil, &Error{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", len(data), limits.Bytes)}
	}
	if limits.Pieces > 0 && pieces(data) > limits.Pieces {
		return nil, nil, &Error{Problem: fmt.Sprintf("has more than %d maps, lists and values", limits.Pieces)}
	}
	root, err := parse(data)
	if err != nil || root == nil {
		return nil, nil, err
	}
	if problem := inspect(root, limits); problem != nil {
		return nil, nil, problem
	}
	content, err := convert(data, limits.Duplicates)
	return content, root, err
}

// DecodeInto decodes into a value of Go as sigs.k8s.io/yaml does, with fields that it does not know and keys written twice. It is
// for large indexes whose format is the field's, not ours: a document without an anchor has nothing that can become large, and
// is parsed once. Every error is an *Error.
func DecodeInto(data []byte, limits Limits, into any) error {
	if len(data) > limits.Bytes {
		return &Error{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", len(data), limits.Bytes)}
	}
	if bytes.IndexByte(data, '&') >= 0 {
		limits.Duplicates = true
		if problem := Inspect(data, limits); problem != nil {
			return problem
		}
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return syntaxError(err)
	}
	return nil
}

// pieces is no less than half the number of keys and values in a document: each begins a line, a list, a map, or follows a comma.
func pieces(data []byte) (count int) {
	for _, char := range data {
		switch char {
		case '\n', '[', '{', ',', '-':
			count++
		}
	}
	return count
}

// Inspect says what makes a document too large or too deep; nil if nothing does, or if it is no YAML at all.
func Inspect(data []byte, limits Limits) *Error {
	if root, err := parse(data); err == nil && root != nil {
		return inspect(root, limits)
	}
	return nil
}

// parse gives the tree of the only document, aliases unexpanded.
func parse(data []byte) (*yamlnodes.Node, error) {
	decoder := yamlnodes.NewDecoder(bytes.NewReader(data))
	var root, second yamlnodes.Node
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, syntaxError(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{Line: second.Line, Problem: "holds more than one document"}
	}
	return &root, nil
}

func convert(data []byte, duplicates bool) (any, error) {
	read := yaml.YAMLToJSONStrict
	if duplicates {
		read = yaml.YAMLToJSON
	}
	encoded, err := read(data)
	if err != nil {
		return nil, syntaxError(err)
	}
	var content any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, &Error{Problem: "is not valid"}
	}
	return content, nil
}

var (
	position = regexp.MustCompile(`line (\d+): `)
	prefix   = regexp.MustCompile(`^(error converting YAML to JSON: )?(yaml: )?(unmarshal errors:\s*)?(line \d+: )?`)
	// quoted finds what parsers quote from the document, which may be a value; punctuation is their own.
	quoted = regexp.MustCompile("(?s)['\"`].*[\\pL\\pN].*['\"`]")
)

// syntaxError takes over what a parser says, without what it quotes.
func syntaxError(err error) *Error {
	text, line := err.Error(), 0
	if match := position.FindStringSubmatch(text); match != nil {
		line, _ = strconv.Atoi(match[1])
	}
	text = quoted.ReplaceAllString(prefix.ReplaceAllString(text, ""), "…")
	return &Error{Line: line, Problem: "is not valid YAML: " + text}
}
