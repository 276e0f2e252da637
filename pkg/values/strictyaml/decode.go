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
	// Duplicates lets the last of equal keys count, instead of refusing them: what Helm does with charts.
	Duplicates bool
}

// Error says what is wrong with a document, and where.
type Error struct {
	// Line counts from 1; 0 is unknown.
	Line int
	// Problem never holds a value.
	Problem string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Decode gives the document's content: maps with string keys, lists, strings, booleans, int64, float64 and nil. An empty
// document is nil. Every error is an *Error.
func Decode(data []byte, limits Limits) (any, error) {
	if len(data) > limits.Bytes {
		return nil, &Error{Problem: fmt.Sprintf("has %d bytes, at most %d are taken", len(data), limits.Bytes)}
	}
	root, err := parse(data)
	if err != nil || root == nil {
		return nil, err
	}
	if problem := inspect(root, limits); problem != nil {
		return nil, problem
	}
	return convert(data, limits.Duplicates)
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
