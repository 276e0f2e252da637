package strictyaml

import (
	"fmt"
	"math"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// nodeCost is the cost of a node in addition to its text.
const nodeCost = 1

// inspection measures a tree as if its aliases were expanded.
type inspection struct {
	limits Limits
	size   int
	open   map[*yamlnodes.Node]bool
}

func inspect(root *yamlnodes.Node, limits Limits) *Error {
	inspection := inspection{limits: limits, open: map[*yamlnodes.Node]bool{}}
	return inspection.node(root, 0)
}

func (i *inspection) node(node *yamlnodes.Node, depth int) *Error {
	if problem := i.spend(nodeCost + len(node.Value)); problem != "" {
		return &Error{Line: node.Line, Problem: problem}
	}
	switch node.Kind {
	case yamlnodes.DocumentNode:
		return i.children(node, depth)
	case yamlnodes.AliasNode:
		return i.alias(node, depth)
	case yamlnodes.ScalarNode:
		return i.scalar(node)
	}
	if depth++; depth > i.limits.Depth {
		return &Error{Line: node.Line, Problem: fmt.Sprintf("is nested deeper than %d", i.limits.Depth)}
	}
	if node.Kind == yamlnodes.MappingNode {
		if err := i.keys(node); err != nil {
			return err
		}
	}
	return i.children(node, depth)
}

func (i *inspection) spend(bytes int) (problem string) {
	if i.size += bytes; i.size > i.limits.Bytes {
		return fmt.Sprintf("has more than %d bytes with its aliases expanded", i.limits.Bytes)
	}
	budget := i.limits.Budget
	if budget == nil {
		return ""
	}
	if budget.left -= bytes; budget.left < 0 {
		return fmt.Sprintf("has, together with the documents before it, more than %d bytes with all aliases expanded", budget.most)
	}
	return ""
}

func (i *inspection) children(node *yamlnodes.Node, depth int) *Error {
	i.open[node] = true
	defer delete(i.open, node)
	for _, child := range node.Content {
		if err := i.node(child, depth); err != nil {
			return err
		}
	}
	return nil
}

// alias inspects its target again: the limit of bytes bounds this, too.
func (i *inspection) alias(node *yamlnodes.Node, depth int) *Error {
	if i.open[node.Alias] {
		return &Error{Line: node.Line, Problem: "has an alias inside its own anchor"}
	}
	problem := i.node(node.Alias, depth)
	if problem != nil {
		problem.Line = node.Line
	}
	return problem
}

func (i *inspection) scalar(node *yamlnodes.Node) *Error {
	if node.ShortTag() != "!!float" {
		return nil
	}
	var number float64
	if err := node.Decode(&number); err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return &Error{Line: node.Line, Problem: "has a number that is not finite"}
	}
	return nil
}

// keys refuses duplicate keys and keys that are no text.
func (i *inspection) keys(node *yamlnodes.Node) *Error {
	seen := make(map[string]bool, len(node.Content)/2)
	for at := 0; at+1 < len(node.Content); at += 2 {
		key := node.Content[at]
		if key.Kind != yamlnodes.ScalarNode {
			return &Error{Line: key.Line, Problem: "has a key that is not a string"}
		}
		if i.limits.Duplicates || key.Tag == "!!merge" && key.Value == "<<" { // "<<" may occur more than once
			continue
		}
		name := nameOf(key)
		if seen[name] {
			return &Error{Line: key.Line, Problem: fmt.Sprintf("has key %q twice", abridged(name))}
		}
		seen[name] = true
	}
	return nil
}

// nameOf is the text that a key becomes: 0x10 and 16 are one key, as are yes and true.
func nameOf(key *yamlnodes.Node) string {
	if key.Style != 0 || !looksTyped(key.Value) {
		return key.Value
	}
	encoded, err := yaml.YAMLToJSON([]byte(key.Value))
	if err != nil {
		return key.Value
	}
	return strings.Trim(string(encoded), "\"\n")
}

// looksTyped says whether a plain key may be a number or a boolean that has other spellings.
func looksTyped(key string) bool {
	switch {
	case key == "" || len(key) > longestKey:
		return false
	case strings.ContainsRune("0123456789+-.", rune(key[0])):
		return strings.Trim(key, "0123456789") != "" || key[0] == '0' && len(key) > 1
	}
	switch strings.ToLower(key) {
	case "y", "n", "yes", "no", "on", "off", "true", "false":
		return true
	}
	return false
}

const longestKey = 63

func abridged(key string) string {
	if len(key) > longestKey {
		return key[:longestKey] + "…"
	}
	return key
}
