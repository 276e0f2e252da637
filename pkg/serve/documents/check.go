package documents

import (
	"reflect"
	"slices"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type entry struct{ key, value *yamlnodes.Node }

// entries of a map, with those that "<<" merges into it: the later of equal keys counts, and of maps that are merged together the first.
func entries(node *yamlnodes.Node) []entry {
	var found []entry
	if node.Kind != yamlnodes.MappingNode {
		return nil
	}
	at := map[string]int{}
	add := func(one entry) {
		if i, isThere := at[one.key.Value]; isThere {
			found[i] = one
			return
		}
		at[one.key.Value] = len(found)
		found = append(found, one)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolved(node.Content[i]), resolved(node.Content[i+1])
		if key.Tag != "!!merge" {
			add(entry{key, value})
			continue
		}
		merged := []*yamlnodes.Node{value}
		if value.Kind == yamlnodes.SequenceNode {
			merged = value.Content
		}
		for _, part := range slices.Backward(merged) {
			for _, one := range entries(resolved(part)) {
				add(one)
			}
		}
	}
	return found
}

// resolved follows aliases; strictyaml has refused cycles.
func resolved(node *yamlnodes.Node) *yamlnodes.Node {
	for node.Kind == yamlnodes.AliasNode {
		node = node.Alias
	}
	return node
}

// check reports unknown fields and wrong kinds of values in a tree, by its Go type.
func (r *reading) check(node *yamlnodes.Node, wanted reflect.Type, path string) {
	node = resolved(node)
	for wanted.Kind() == reflect.Pointer {
		wanted = wanted.Elem()
	}
	if node.ShortTag() == "!!null" {
		return // like an absent value
	}
	switch {
	case wanted == reflect.TypeFor[runtime.RawExtension]():
		return // any value; the schema and admission check it
	case wanted == reflect.TypeFor[metav1.Duration]():
		r.scalar(node, "!!str", "a duration such as 10m", path)
	case wanted.Kind() == reflect.Struct:
		r.checkStruct(node, wanted, path)
	case wanted.Kind() == reflect.Slice:
		if node.Kind != yamlnodes.SequenceNode {
			r.problem(r.at(node), "%s must be a list", path)
			return
		}
		for _, item := range node.Content {
			r.check(item, wanted.Elem(), path+"[]")
		}
	case wanted.Kind() == reflect.Bool:
		r.scalar(node, "!!bool", "true or false", path)
	case wanted.Kind() == reflect.String:
		r.scalar(node, "!!str", "a string: put it into quotes", path)
	default:
		r.scalar(node, "!!int", "a whole number", path)
	}
}

// scalar follows YAML 1.2, as the tree does; a value that kubectl reads differently fails in decoding.
func (r *reading) scalar(node *yamlnodes.Node, tag, what, path string) {
	if node.Kind != yamlnodes.ScalarNode || node.ShortTag() != tag {
		r.problem(r.at(node), "%s must be %s", path, what)
	}
}

func (r *reading) checkStruct(node *yamlnodes.Node, wanted reflect.Type, path string) {
	if node.Kind != yamlnodes.MappingNode {
		r.problem(r.at(node), "%s must be a map", path)
		return
	}
	fields := map[string]reflect.Type{}
	for field := range wanted.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field.Type
	}
	for _, entry := range entries(node) {
		field, ok := fields[entry.key.Value]
		if !ok {
			r.problem(r.at(entry.key), "unknown field %q in %s", abridged(entry.key.Value), path)
			continue
		}
		r.check(entry.value, field, path+"."+entry.key.Value)
	}
}

const longestKey = 63

func abridged(key string) string {
	if len(key) > longestKey {
		return key[:longestKey] + "…"
	}
	return key
}
