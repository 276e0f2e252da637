// Package manifest reads objects from rendered text. Documents are separated by lines that begin with three dashes,
// and decoded strictly (see strictyaml). Lists are unpacked, empty documents are left out. Every object has
// apiVersion, kind and a name; generateName would create another object with each attempt.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Limits of the output of one rendering.
const (
	MaxObjects = 2000
	// MaxObjectBytes is for one object as JSON.
	MaxObjectBytes = 1 << 20
	// MaxBytes is for the rendered text, and for all objects together.
	MaxBytes = 16 << 20
	// MaxNodes is for all objects: maps, lists and plain values. They take far more memory than their text.
	MaxNodes = 500_000
	maxDepth = 256
)

// Source is rendered text and its origin.
type Source struct {
	Text string
	// At returns the file and line that wrote a byte of the text.
	At func(offset int) (file string, line int)
}

// Reader collects the objects of one rendering.
type Reader struct {
	// Duplicates accepts equal keys: the last counts.
	Duplicates bool

	objects []*unstructured.Unstructured
	bytes   int
	nodes   int
}

// Objects in the order they were read.
func (r *Reader) Objects() []*unstructured.Unstructured { return r.objects }

// Read adds and returns a text's objects. Errors: *render.TemplateError, *render.LimitError.
func (r *Reader) Read(source Source) ([]*unstructured.Unstructured, error) {
	before := len(r.objects)
	for _, document := range Split(source.Text) {
		if err := r.document(source, document); err != nil {
			return nil, err
		}
	}
	return r.objects[before:], nil
}

func (r *Reader) document(source Source, document Document) error {
	limits := strictyaml.Limits{Bytes: MaxBytes, Depth: maxDepth, Duplicates: r.Duplicates}
	content, err := strictyaml.Decode(withLastLine(document.Text), limits)
	if problem, ok := errors.AsType[*strictyaml.Error](err); ok {
		offset := document.Offset + lineOffset(document.Text, problem.Line)
		return templateError(source, offset, "the rendered manifest "+problem.Problem)
	}
	if err != nil {
		return err
	}
	offset := document.Offset + leading(document.Text)
	switch content := content.(type) {
	case nil:
		return nil
	case map[string]any:
		return r.object(source, offset, content)
	}
	return templateError(source, offset, "the rendered manifest is not an object")
}

// withLastLine ends the last line, for the newline of a block scalar there.
func withLastLine(text string) []byte {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text)
}

func (r *Reader) object(source Source, offset int, content map[string]any) error {
	if len(content) == 0 {
		return nil
	}
	object := &unstructured.Unstructured{Object: content}
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(object.GetKind(), "List") {
		for i, item := range items {
			entry, ok := item.(map[string]any)
			if !ok {
				return templateError(source, offset, fmt.Sprintf("item %d of the %s is not an object", i, object.GetKind()))
			}
			if err := r.object(source, offset, entry); err != nil {
				return err
			}
		}
		return nil
	}
	if object.GetKind() == "List" {
		return templateError(source, offset, "the List has no items: add items, or remove the List")
	}
	if problem := identityProblem(object); problem != "" {
		wrong := templateError(source, offset, problem)
		if object.GetAPIVersion() != "" && object.GetKind() != "" {
			wrong.Stage = render.StageExecution // values often set names
		}
		return wrong
	}
	return r.add(object)
}

func (r *Reader) add(object *unstructured.Unstructured) error {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	r.objects = append(r.objects, object)
	r.bytes += len(encoded)
	r.nodes += nodes(object.Object)
	switch {
	case len(encoded) > MaxObjectBytes:
		return &render.LimitError{What: fmt.Sprintf("bytes in %s %q", object.GetKind(), object.GetName()), Max: MaxObjectBytes}
	case len(r.objects) > MaxObjects:
		return &render.LimitError{What: "objects", Max: MaxObjects}
	case r.bytes > MaxBytes:
		return &render.LimitError{What: "bytes in all objects", Max: MaxBytes}
	case r.nodes > MaxNodes:
		return &render.LimitError{What: "values in all objects", Max: MaxNodes}
	}
	return nil
}

func nodes(value any) int {
	count := 1
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			count += nodes(child)
		}
	case []any:
		for _, child := range value {
			count += nodes(child)
		}
	}
	return count
}

func identityProblem(object *unstructured.Unstructured) string {
	if generated, found, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "generateName"); found && generated != "" {
		return fmt.Sprintf("%s has metadata.generateName: give it a name, since each attempt would create another one", object.GetKind())
	}
	for _, field := range []string{"apiVersion", "kind", "metadata.name"} {
		value, found, err := unstructured.NestedString(object.Object, strings.Split(field, ".")...)
		if err != nil {
			return fmt.Sprintf("the rendered manifest has a %s that is not a string", field)
		}
		if !found || value == "" {
			return "the rendered manifest has no " + field
		}
	}
	return ""
}

func templateError(source Source, offset int, problem string) *render.TemplateError {
	file, line := source.At(offset)
	return &render.TemplateError{File: file, Line: line, Problem: problem, Stage: render.StageOutput}
}

// leading is the offset of a document's content, after blank lines and comments.
func leading(text string) int {
	offset := 0
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			return offset
		}
		offset += len(line)
	}
	return 0
}

// lineOffset is the offset of a line, counted from 1, or of the content for 0.
func lineOffset(text string, line int) int {
	if line < 1 {
		return leading(text)
	}
	offset := 0
	for content := range strings.Lines(text) {
		if line--; line == 0 {
			return offset
		}
		offset += len(content)
	}
	return offset
}

// Document is one YAML document of a text.
type Document struct {
	Text string
	// Offset of the text's first byte.
	Offset int
}

// Split splits a text at document markers. The rest of a marker's line belongs to the next document.
func Split(text string) []Document {
	var documents []Document
	start, at := 0, 0
	for line := range strings.Lines(text) {
		skip, marker := markerLength(line)
		if marker {
			documents = append(documents, Document{Text: text[start:at], Offset: start})
			start = at + skip
		}
		at += len(line)
	}
	return append(documents, Document{Text: text[start:], Offset: start})
}

// markerLength returns the length of a line's marker, and whether the line begins or ends a document.
func markerLength(line string) (int, bool) {
	for _, marker := range []string{"---", "..."} {
		rest, ok := strings.CutPrefix(line, marker)
		if ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
			return len(marker), true
		}
	}
	return 0, false
}
