package documents

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Limits of a document. Values and aliases have their own limits.
const (
	documentBytes  = 4 << 20
	documentDepth  = 64
	documentPieces = 100_000
)

const kind = "AddonCatalogue"

// document reads one document. Argument before is the number of lines before it in its file.
func (c *collection) document(file string, before int, content []byte) {
	decoded, root, err := strictyaml.DecodeTree(content, strictyaml.Limits{
		Bytes: documentBytes, Depth: documentDepth, Pieces: documentPieces, Budget: c.budget,
	})
	if malformed, ok := errors.AsType[*strictyaml.Error](err); ok {
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
	if len(root.Content) != 1 {
		c.problem(Place{File: file}, "is not valid YAML")
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
		reading.addAll(list, items)
	}
}

// reading is one document.
type reading struct {
	*collection
	file   string
	before int
	// isCore: it is an AddonCatalogue of type Core.
	isCore bool
}

func (r *reading) at(node *yamlnodes.Node) Place {
	return Place{File: r.file, Line: r.before + node.Line}
}

// list is the list of add-ons in a document, as a tree and decoded; nil if there is none.
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
			r.keep(r.at(top), content)
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

// keep keeps an AddonCatalogue without its add-ons.
func (r *reading) keep(at Place, content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	spec, _ := content["spec"].(map[string]any)
	others := maps.Clone(spec)
	delete(others, "addons")
	kept := Object{Place: at, Name: name}
	encoded, err := json.Marshal(others)
	if err != nil || json.Unmarshal(encoded, &kept.Spec) != nil {
		r.problem(at, "spec can't be read: a duration or a number is wrong")
		return
	}
	r.isCore = kept.Spec.Type == v1.CatalogueCore
	if len(r.objects) < objectsKept {
		r.objects = append(r.objects, kept)
	}
}

// addAll decodes and adds the add-ons of a list that was checked.
func (r *reading) addAll(list *yamlnodes.Node, items []any) {
	for i, item := range list.Content {
		at := r.at(item)
		item = resolved(item)
		addon := &v1.Addon{}
		written, err := r.decode(items[i], addon)
		if err != nil {
			r.problem(at, "%v", err)
			continue
		}
		versions := make([]Place, len(addon.Versions))
		for i := range versions {
			versions[i] = at
		}
		r.locate(string(addon.Name), "", item)
		for _, field := range entries(item) {
			if field.key.Value == "versions" && len(field.value.Content) == len(versions) {
				for i, version := range field.value.Content {
					versions[i] = r.at(version)
					r.locate(string(addon.Name), addon.Versions[i].Version, resolved(version))
				}
			}
		}
		if r.isCore {
			r.core[addon.Name] = true
		}
		if !r.add(addon, written, at, versions) {
			return
		}
	}
}

// errUnread says that an add-on can't be decoded for a reason that the tree did not show.
var errUnread = errors.New("the add-on can't be read: a duration or a number is wrong")

// decode decodes an add-on, and returns its size in bytes with aliases written out. Versions are counted before they
// are decoded: each takes much more memory than "{}".
func (r *reading) decode(item any, into *v1.Addon) (written int, err error) {
	fields, _ := item.(map[string]any)
	if versions, _ := fields["versions"].([]any); len(versions) > versionLimit {
		return 0, fmt.Errorf("the add-on has %d versions, more than %d", len(versions), versionLimit)
	}
	encoded, err := json.Marshal(item)
	if err != nil || json.Unmarshal(encoded, into) != nil {
		return 0, errUnread
	}
	return len(encoded), nil
}
