package documents

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	yamlnodes "go.yaml.in/yaml/v3"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Check checks the add-ons as admission checks a catalogue of this type. If it is empty, the add-ons of documents with
// type Core are checked as those of a Core catalogue, and all others as those of a Custom one. Errors: *InvalidError,
// each problem with the line of its field; others are the context's.
func (c *Content) Check(ctx context.Context, kind v1.CatalogueType) error {
	var found []catalogue.Problem
	for _, object := range c.catalogues(kind) {
		_, err := catalogue.Read(object, values.CheckVersion, values.CheckTemplate, health.Check(ctx), rights.CheckVersion)
		if wrong, ok := errors.AsType[*catalogue.InvalidError](err); ok {
			found = append(found, wrong.Problems...)
		} else if err != nil {
			return err
		}
	}
	if ctx.Err() != nil { // the result may be wrong
		return ctx.Err()
	}
	if len(found) == 0 {
		return nil
	}
	found = found[:min(len(found), problemsKept)]
	invalid := &InvalidError{}
	for i, place := range c.locate(ctx, found) {
		invalid.Problems = append(invalid.Problems, Problem{Place: place, Message: found[i].String()})
	}
	return invalid
}

// typeOf is the type of the catalogue that a document has an add-on in.
func (c *Content) typeOf(addon v1.AddonName) v1.CatalogueType {
	if c.core[addon] {
		return v1.CatalogueCore
	}
	return v1.CatalogueCustom
}

// catalogues are the add-ons as catalogues of one type, or of the types that the documents have.
func (c *Content) catalogues(kind v1.CatalogueType) []*v1.AddonCatalogue {
	if kind != "" {
		return []*v1.AddonCatalogue{{Spec: v1.AddonCatalogueSpec{Type: kind, Addons: c.Addons}}}
	}
	made := []*v1.AddonCatalogue{
		{Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCore}}, {Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom}},
	}
	for _, addon := range c.Addons {
		for _, one := range made {
			if one.Spec.Type == c.typeOf(addon.Name) {
				one.Spec.Addons = append(one.Spec.Addons, addon)
			}
		}
	}
	return made
}

// locate finds the lines of the fields that problems name: it reads the files again, since no tree of a document is kept.
func (c *Content) locate(ctx context.Context, problems []catalogue.Problem) []Place {
	again := newCollection()
	again.wanted, again.located = problems, make([]Place, len(problems))
	_ = c.read(ctx, again) // all fields that it does not find have the place of their version
	for i, problem := range problems {
		if again.located[i].File == "" {
			again.located[i] = c.Place(problem.Addon, problem.Version)
		}
	}
	return again.located
}

// locate finds the fields of problems with an add-on, or with a version of it, in its tree.
func (r *reading) locate(addon, version string, node *yamlnodes.Node) {
	for i, problem := range r.wanted {
		if problem.Addon != addon || problem.Version != version || r.located[i].File != "" {
			continue
		}
		if field := fieldIn(node, problem.Field); field != node {
			r.located[i] = r.at(field)
		}
	}
}

// pathStep is a key of a path, or an index or a name in brackets.
var pathStep = regexp.MustCompile(`([^.\[\]]+)|\[([^\]]*)\]`)

// fieldIn is the node of a field, such as template.access[0].name or template.formSpec[size], or the last node above it
// that exists.
func fieldIn(node *yamlnodes.Node, path string) *yamlnodes.Node {
	last := node
	for _, step := range pathStep.FindAllStringSubmatch(path, -1) {
		next := itemOf(node, step[2])
		if step[1] != "" {
			next = valueOf(node, step[1])
		}
		if next.value == nil {
			return last
		}
		node, last = next.value, next.key
	}
	return last
}

// valueOf is the entry of a map with this key.
func valueOf(node *yamlnodes.Node, key string) entry {
	for _, one := range entries(node) {
		if one.key.Value == key {
			return one
		}
	}
	return entry{}
}

// itemOf is an item of a list by its index, or by the internalName of a form's field.
func itemOf(node *yamlnodes.Node, name string) entry {
	if node.Kind != yamlnodes.SequenceNode {
		return entry{}
	}
	for i, item := range node.Content {
		item = resolved(item)
		if named := valueOf(item, "internalName"); strconv.Itoa(i) == name || named.value != nil && named.value.Value == name {
			return entry{item, item}
		}
	}
	return entry{}
}
