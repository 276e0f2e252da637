// Package form joins the fields of an add-on's form and the YAML of spec.values: both are the same values. A field that
// the user changed changes its own path in the YAML, and nothing else there: comments, order and other values stay.
//
// It is pure. Problems name a field or a line, and never a value.
package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Names of a form's inputs: the value of a field, what it was when the page was made, and the YAML of all values.
const (
	FieldPrefix = "field."
	WasPrefix   = "was."
	YAMLName    = "values"
)

// KindLines is the kind of a text with several lines: an input of one line loses their ends.
const KindLines = "lines"

// Field is an input of a page.
type Field struct {
	Path, Label, Help, Kind string
	// Options are those of a select.
	Options    []string
	IsRequired bool
	// Value is shown, Was is that of the YAML, and Default is what counts if it is empty.
	Value, Was, Default string
	Problem             string
}

// Form are the fields with the YAML beside them.
type Form struct {
	Fields []Field
	YAML   string
	// Values are those of the YAML.
	Values map[string]any
	// Problem is about the YAML as a whole.
	Problem string
}

// IsValid says whether no check found a problem.
func (f *Form) IsValid() bool {
	return f.Problem == "" && !slices.ContainsFunc(f.Fields, func(one Field) bool { return one.Problem != "" })
}

// Of makes a form of a text in YAML.
func Of(spec []v1.FormField, text string) *Form {
	made := &Form{YAML: text}
	read, err := values.Decode([]byte(text))
	if err != nil {
		made.Problem = err.Error()
	}
	made.Values = read
	wrong := map[string]string{}
	if found, isForm := errors.AsType[*values.FormError](values.CheckForm(spec, read, nil)); err == nil && isForm {
		for _, one := range found.Fields {
			wrong[one.Field] = one.Problem
		}
	}
	for _, one := range spec {
		made.Fields = append(made.Fields, fieldOf(one, read, wrong[one.InternalName]))
	}
	return made
}

// Posted applies the fields of a sent form that the user changed to its YAML.
func Posted(spec []v1.FormField, sent url.Values) *Form {
	changed := map[string]string{}
	for _, one := range spec {
		given, isThere := sent[FieldPrefix+one.InternalName]
		if isThere && unixLines.Replace(given[0]) != unixLines.Replace(sent.Get(WasPrefix+one.InternalName)) {
			changed[one.InternalName] = unixLines.Replace(given[0])
		}
	}
	text, wrong := apply(sent.Get(YAMLName), spec, changed)
	made := Of(spec, text)
	for i := range made.Fields {
		if one := &made.Fields[i]; wrong[one.Path] != "" {
			one.Problem, one.Value = wrong[one.Path], changed[one.Path]
		}
	}
	return made
}

// unixLines undoes what browsers do with line ends.
var unixLines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// YAML is a text of values.
func YAML(of map[string]any) string {
	if len(of) == 0 {
		return ""
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(of) != nil {
		return ""
	}
	return out.String()
}

func fieldOf(of v1.FormField, read map[string]any, problem string) Field {
	made := Field{
		Path: of.InternalName, Label: cmp.Or(of.DisplayName, of.InternalName), Help: of.HelpText, Kind: string(of.Type),
		IsRequired: of.Required, Problem: problem,
	}
	if of.Default != nil {
		var preset any
		if json.Unmarshal(of.Default.Raw, &preset) == nil {
			made.Default = shown(preset)
		}
	}
	if path, err := values.ParsePath(of.InternalName); err == nil {
		if value, found, err := path.Get(read); err == nil && found {
			made.Value = shown(value)
			made.Was = made.Value
		}
	}
	switch {
	case of.Type == v1.FormSelect:
		made.Options = of.Options
	case of.Type == v1.FormBoolean:
		made.Options = []string{"true", "false"}
	case strings.ContainsAny(made.Value, "\r\n"):
		made.Kind = KindLines
	}
	if made.Options != nil && made.Value != "" && !slices.Contains(made.Options, made.Value) {
		made.Options = append(slices.Clone(made.Options), made.Value) // else a browser sends an empty value, which removes this one
	}
	return made
}

// shown is a plain value as an input has it. Maps and lists are edited in the YAML only.
func shown(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case map[string]any, []any:
		return ""
	}
	return fmt.Sprint(value)
}

var (
	errNumber  = errors.New("must be a number")
	errWhole   = errors.New("must be a whole number")
	errBoolean = errors.New("must be true or false")
	errBlocked = errors.New("can't be set here, since the YAML has another value or an anchor on its path: edit the YAML")
)

// apply sets fields in a text of YAML, which is parsed once. Empty values remove fields. Problems are by path, and do not contain
// the value.
func apply(text string, spec []v1.FormField, changed map[string]string) (next string, wrong map[string]string) {
	wrong = map[string]string{}
	if len(changed) == 0 {
		return text, wrong
	}
	_, root, err := strictyaml.DecodeTree([]byte(text), strictyaml.Limits{Bytes: values.MaxBytes, Depth: values.MaxDepth})
	isEmpty := root == nil
	if isEmpty {
		root = &yaml.Node{Kind: yaml.DocumentNode, HeadComment: strings.TrimSpace(text)} // comments only, or nothing
		root.Content = []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}
	}
	top := root.Content[0]
	for _, one := range spec {
		value, isChanged := changed[one.InternalName]
		failed := errBlocked
		if isChanged && err == nil {
			failed = set(top, one, value)
		}
		if isChanged && failed != nil {
			wrong[one.InternalName] = failed.Error()
		}
	}
	if len(wrong) == len(changed) || isEmpty && len(top.Content) == 0 {
		return text, wrong
	}
	if len(top.Content) == 0 && top.HeadComment == "" && top.FootComment == "" {
		return "", wrong
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(root) != nil {
		return text, wrong
	}
	return out.String(), wrong
}

// set sets or removes one field. Errors do not contain the value.
func set(top *yaml.Node, of v1.FormField, value string) error {
	path, err := values.ParsePath(of.InternalName)
	if err != nil {
		return err
	}
	leaf, err := scalar(of.Type, value)
	if err != nil {
		return err
	}
	return put(top, path, leaf)
}

// scalar is the node of a value; nil for an empty one.
func scalar(kind v1.FormFieldType, value string) (*yaml.Node, error) {
	if value == "" {
		return nil, nil
	}
	made := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	switch kind {
	case v1.FormNumber:
		number, err := strconv.ParseFloat(value, 64)
		if err != nil || number-number != 0 {
			return nil, errNumber
		}
		made.Value = strconv.FormatFloat(number, 'f', -1, 64)
	case v1.FormInteger:
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, errWhole
		}
		made.Value = strconv.FormatInt(number, 10)
	case v1.FormBoolean:
		if value != "true" && value != "false" {
			return nil, errBoolean
		}
	default:
		made.Tag, made.Style = "!!str", yaml.DoubleQuotedStyle // "on" is a boolean for YAML 1.1
	}
	return made, nil
}

// put sets the node at a path below a node, or removes it if it is nil. What is missing on the path is created.
func put(at *yaml.Node, path values.Path, leaf *yaml.Node) error {
	for i, step := range path {
		isLast, isTaken := i == len(path)-1, takes(at, step)
		next := child(at, step)
		switch {
		case !isTaken, isLast && next != nil && (next.Kind != yaml.ScalarNode || next.Anchor != ""):
			return errBlocked // with an anchor, its aliases would change too
		case next == nil && leaf == nil:
			return nil
		case isLast && leaf == nil:
			remove(at, step)
			return nil
		case next == nil:
			next = grow(at, step)
		}
		if isLast {
			next.Tag, next.Value, next.Style = leaf.Tag, leaf.Value, leaf.Style
		}
		at = next
	}
	return nil
}

// takes says whether a node has places for a step. An empty one becomes a list or a map.
func takes(at *yaml.Node, step values.Step) bool {
	wanted := yaml.MappingNode
	if step.IsIndex {
		wanted = yaml.SequenceNode
	}
	if at.Kind == yaml.ScalarNode && (at.Tag == "!!null" || at.Value == "") {
		at.Kind, at.Tag, at.Value = wanted, "", ""
	}
	return at.Kind == wanted && at.Anchor == ""
}

// child is the node below a step; nil if there is none.
func child(of *yaml.Node, step values.Step) *yaml.Node {
	if step.IsIndex {
		if step.Index < len(of.Content) {
			return of.Content[step.Index]
		}
		return nil
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == step.Key {
			return of.Content[i+1]
		}
	}
	return nil
}

// grow adds an empty node below a step, and fills a list up to it.
func grow(of *yaml.Node, step values.Step) *yaml.Node {
	of.Style = 0 // {} has no lines of its own
	made := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	if !step.IsIndex {
		of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: step.Key}, made)
		return made
	}
	for len(of.Content) < step.Index {
		of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
	}
	of.Content = append(of.Content, made)
	return made
}

func remove(of *yaml.Node, step values.Step) {
	if step.IsIndex {
		made := of.Content[step.Index]
		made.Kind, made.Tag, made.Value, made.Content, made.Style = yaml.ScalarNode, "!!null", "null", nil, 0
		return
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == step.Key {
			of.Content = slices.Delete(of.Content, i, i+2)
			return
		}
	}
}
