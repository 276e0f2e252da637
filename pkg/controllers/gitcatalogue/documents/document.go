package documents

import (
	"errors"
	"reflect"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// documentLimits leave room for values, which have a limit of their own, and for aliases.
var documentLimits = strictyaml.Limits{Bytes: 4 << 20, Depth: 64}

// kind is what a document that is no list says it is.
const kind = "AddonCatalogue"

// document reads one document, whose first line follows the given number of lines in its file.
func (c *collection) document(file string, before int, content []byte) {
	decoded, err := strictyaml.Decode(content, documentLimits)
	var malformed *strictyaml.Error
	if errors.As(err, &malformed) {
		place := Place{File: file}
		if malformed.Line > 0 {
			place.Line = before + malformed.Line
		}
		c.problem(place, "%s", malformed.Problem)
		return
	}
	if err != nil || decoded == nil {
		return
	}
	var root yamlnodes.Node
	if err := yamlnodes.Unmarshal(content, &root); err != nil || len(root.Content) != 1 {
		c.problem(Place{File: file}, "is not valid YAML") // strictyaml takes no such thing
		return
	}
	reading := reading{collection: c, file: file, before: before}
	list, items := reading.list(resolved(root.Content[0]), decoded)
	if list == nil || len(list.Content) != len(items) {
		return
	}
	problems := len(c.problems)
	reading.check(list, reflect.TypeFor[[]v1.Addon](), "addons")
	if len(c.problems) == problems {
		reading.take(list, items)
	}
}

// reading is one document under way.
type reading struct {
	*collection
	file   string
	before int
}

func (r *reading) at(node *yamlnodes.Node) Place {
	return Place{File: r.file, Line: r.before + node.Line}
}

// list is the list of add-ons in a document, as a tree and decoded; nil where there is none, which may be a problem.
func (r *reading) list(top *yamlnodes.Node, decoded any) (*yamlnodes.Node, []any) {
	switch content := decoded.(type) {
	case []any:
		return top, content
	case map[string]any:
		if content["kind"] != kind || content["apiVersion"] != v1.GroupVersion.String() {
			r.problem(r.at(top), "is neither a list of add-ons nor an %s of %s", kind, v1.GroupVersion)
			return nil, nil
		}
		return r.listOf(top, content)
	}
	r.problem(r.at(top), "is neither a list of add-ons nor an %s", kind)
	return nil, nil
}

// listOf is spec.addons of an AddonCatalogue.
func (r *reading) listOf(top *yamlnodes.Node, content map[string]any) (*yamlnodes.Node, []any) {
	spec, _ := content["spec"].(map[string]any)
	items, _ := spec["addons"].([]any)
	for _, entry := range entries(top) {
		switch entry.key.Value {
		case "apiVersion", "kind", "metadata", "status":
		case "spec":
			problems := len(r.problems)
			r.check(entry.value, reflect.TypeFor[v1.AddonCatalogueSpec](), "spec")
			if len(r.problems) > problems {
				return nil, nil
			}
			for _, field := range entries(entry.value) {
				if field.key.Value == "addons" {
					return field.value, items
				}
			}
		default:
			r.problem(r.at(entry.key), "unknown field %q", abridged(entry.key.Value))
		}
	}
	return nil, nil
}

// take decodes the add-ons of a list that was checked.
func (r *reading) take(list *yamlnodes.Node, items []any) {
	for i, item := range list.Content {
		at := r.at(item)
		item = resolved(item)
		addon := &v1.Addon{}
		if err := decode(items[i], addon); err != nil {
			r.problem(at, "the add-on can't be read: a duration or a number is wrong")
			continue
		}
		versions := make([]Place, len(addon.Versions))
		for i := range versions {
			versions[i] = at
		}
		for _, field := range entries(item) {
			if field.key.Value == "versions" && len(field.value.Content) == len(versions) {
				for i, version := range field.value.Content {
					versions[i] = r.at(version)
				}
			}
		}
		r.add(addon, at, versions)
	}
}

func decode(content, into any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}
