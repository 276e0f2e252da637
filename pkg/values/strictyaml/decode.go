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
	// Bytes bounds the document, both as written and with its aliases expanded.
	Bytes int
	// Depth bounds the nesting of maps and lists.
	Depth int
	// Pieces bounds maps, lists and values, estimated before parsing as Elements does, and by dashes and lines. 0: no bound.
	Pieces int
	// Budget is shared with other documents; may be nil.
	Budget *Budget
	// Duplicates makes the last of equal keys count instead of an error, as Helm does in charts.
	Duplicates bool
}

// Budget bounds several documents together, such as a folder's. It is not safe for concurrent use.
type Budget struct{ most, left int }

// NewBudget makes a budget of bytes, with aliases expanded.
func NewBudget(bytes int) *Budget { return &Budget{most: bytes, left: bytes} }

// Error describes a problem of a document, and its place.
type Error struct {
	// Line counts from 1; 0 is unknown.
	Line int
	// Problem never contains a value.
	Problem string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Decode returns maps with string keys, lists, strings, booleans, int64, float64 and nil. An empty
// document is nil. Every error is an *Error.
func Decode(data []byte, limits Limits) (any, error) {
	content, _, err := DecodeTree(data, limits)
	return content, err
}

// DecodeTree also returns the tree, with lines and unexpanded aliases; nil for no document.
func DecodeTree(data []byte, limits Limits) (any, *yamlnodes.Node, error) {
	if problem := measure(data, limits); problem != nil {
		return nil, nil, problem
	}
	root, err := parse(data)
	if err != nil || root == nil {
		return nil, nil, err
	}
	if problem := inspect(root, limits); problem != nil {
		return nil, nil, problem
	}
	content, err := convert(data)
	return content, root, err
}

// DecodeInto decodes into a Go value as sigs.k8s.io/yaml does; it accepts unknown fields and
// duplicate keys. It is for large indexes: a document without an anchor can't expand, and is parsed
// only once. Every error is an *Error.
func DecodeInto(data []byte, limits Limits, into any) error {
	if problem := measure(data, limits); problem != nil {
		return problem
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

// measure describes the limit that a document exceeds before it is parsed.
func measure(data []byte, limits Limits) *Error {
	if len(data) > limits.Bytes {
		return &Error{Problem: fmt.Sprintf("has %d bytes, at most %d are allowed", len(data), limits.Bytes)}
	}
	if limits.Pieces > 0 && Elements(data)+count(data, "\n-") > limits.Pieces {
		return &Error{Problem: fmt.Sprintf("has more than %d maps, lists and values", limits.Pieces)}
	}
	return nil
}

// Elements is at least half the number of keys and values of a document in JSON or YAML's flow style. It counts the characters before
// them, also in texts.
func Elements(document []byte) int { return count(document, "[{,") }

func count(document []byte, characters string) (found int) {
	for _, character := range []byte(characters) {
		found += bytes.Count(document, []byte{character})
	}
	return found
}

// Inspect says why a document is too large or too deep; nil if it is neither, or no YAML.
func Inspect(data []byte, limits Limits) *Error {
	if root, err := parse(data); err == nil && root != nil {
		return inspect(root, limits)
	}
	return nil
}

// parse returns the tree of the single document, aliases unexpanded.
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
	for {
		err := decoder.Decode(&second)
		if errors.Is(err, io.EOF) {
			return &root, nil
		}
		if err != nil || !isEmpty(&second) {
			return nil, &Error{Line: second.Line, Problem: "contains more than one document"}
		}
	}
}

// isEmpty says whether a document has no content, such as the text after a "---" at the end.
func isEmpty(document *yamlnodes.Node) bool {
	return len(document.Content) == 1 && document.Content[0].ShortTag() == "!!null"
}

// convert reads a document that was inspected, which finds duplicate keys. Strict decoders also treat a key that overrides a
// merged one ("<<") as a duplicate, although merging is for that; kubectl and Helm read it as it is read here.
func convert(data []byte) (any, error) {
	encoded, err := yaml.YAMLToJSON(data)
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
	// quoted finds parsers' quotations from the document, which may be a value.
	quoted = regexp.MustCompile("(?s)['\"`].*[\\pL\\pN].*['\"`]")
)

// syntaxError returns a parser's error without its quotations.
func syntaxError(err error) *Error {
	text, line := err.Error(), 0
	if match := position.FindStringSubmatch(text); match != nil {
		line, _ = strconv.Atoi(match[1])
	}
	text = quoted.ReplaceAllString(prefix.ReplaceAllString(text, ""), "…")
	return &Error{Line: line, Problem: "is not valid YAML: " + text}
}
