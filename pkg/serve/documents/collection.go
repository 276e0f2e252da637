package documents

import (
	"cmp"
	"fmt"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// InvalidError has the problems of a folder, at least one.
type InvalidError struct{ Problems []Problem }

// mostNamed is how many problems the error's text names; problemsKept how many are collected.
const (
	mostNamed    = 5
	problemsKept = 100
)

func (e *InvalidError) Error() string {
	var texts []string
	for _, problem := range e.Problems {
		texts = append(texts, problem.String())
	}
	return text.First(texts, mostNamed)
}

// collection is the content that was read so far.
type collection struct {
	// files is their number, size that of their bytes.
	files, size int
	// budget is the limit for all documents together.
	budget   *strictyaml.Budget
	problems []Problem
	// full: a limit of the folder is exceeded, and nothing more is read.
	full bool
	// versions is their number in all add-ons; written has the bytes of each add-on with aliases written out.
	versions int
	written  map[v1.AddonName]int
	addons   map[v1.AddonName]*v1.Addon
	// described is the highest version in the document whose description counts.
	described map[v1.AddonName]string
	places    map[[2]string]Place
	objects   []Object
	// core are the add-ons of documents with type Core.
	core map[v1.AddonName]bool
	// wanted are problems whose fields are looked for, and located their places, as far as they were found.
	wanted  []catalogue.Problem
	located []Place
}

func (c *collection) problem(place Place, message string, arguments ...any) {
	if len(c.problems) < problemsKept {
		c.problems = append(c.problems, Problem{place, fmt.Sprintf(message, arguments...)})
	}
}

func (c *collection) refuse(place Place, message string, arguments ...any) error {
	return &InvalidError{[]Problem{{place, fmt.Sprintf(message, arguments...)}}}
}

// add joins an add-on's versions with those of other documents. The description in the document with the highest
// version counts, as in a merge. False: a limit of the folder is exceeded.
func (c *collection) add(addon *v1.Addon, written int, at Place, versions []Place) bool {
	if c.addons == nil {
		c.addons, c.described, c.places = map[v1.AddonName]*v1.Addon{}, map[v1.AddonName]string{}, map[[2]string]Place{}
		c.written = map[v1.AddonName]int{}
	}
	if !c.hasSpace(addon, written, at) {
		c.full = true
		return false
	}
	united := c.addons[addon.Name]
	if united == nil {
		united = &v1.Addon{Name: addon.Name}
		c.addons[addon.Name] = united
		c.places[[2]string{string(addon.Name)}] = at
	}
	highest := ""
	for i, version := range addon.Versions {
		place := [2]string{string(addon.Name), catalogue.Key(version.Version)}
		if first, ok := c.places[place]; ok {
			c.problem(versions[i], "add-on %q has version %q in %s already: remove one of them", addon.Name, version.Version, first)
			continue
		}
		c.places[place] = versions[i]
		united.Versions = append(united.Versions, version)
		if highest == "" || catalogue.Compare(version.Version, highest) > 0 {
			highest = version.Version
		}
	}
	if before, ok := c.described[addon.Name]; !ok || highest != "" && catalogue.Compare(highest, before) > 0 {
		c.described[addon.Name] = highest
		united.DisplayName, united.Description = addon.DisplayName, addon.Description
		united.DocumentationURL, united.SupportedBy = addon.DocumentationURL, addon.SupportedBy
	}
	c.addSlot(united, addon.Slot, at)
	c.addNamespace(united, addon, at)
	return true
}

// addSlot takes the slot of an add-on from the document that names one; two must not differ.
func (c *collection) addSlot(united *v1.Addon, slot v1.Slot, at Place) {
	if united.Slot != "" && slot != "" && slot != united.Slot {
		c.problem(at, "add-on %q has slot %q here and slot %q in another document: give it one", united.Name, slot, united.Slot)
		return
	}
	united.Slot = cmp.Or(united.Slot, slot)
}

// addNamespace takes the namespace of an add-on from the document that names one; two must not
// differ.
func (c *collection) addNamespace(united, addon *v1.Addon, at Place) {
	switch {
	case addon.TargetNamespace == "" && !addon.CreateNamespace:
	case united.TargetNamespace == "" && !united.CreateNamespace:
		united.TargetNamespace, united.CreateNamespace = addon.TargetNamespace, addon.CreateNamespace
	case addon.TargetNamespace != united.TargetNamespace || addon.CreateNamespace != united.CreateNamespace:
		c.problem(at, "add-on %q has targetNamespace %q with createNamespace %t here and %q with %t in another document: give it one",
			united.Name, addon.TargetNamespace, addon.CreateNamespace, united.TargetNamespace, united.CreateNamespace)
	}
}

// hasSpace counts an add-on of a document, and reports an exceeded limit.
func (c *collection) hasSpace(addon *v1.Addon, written int, at Place) bool {
	if c.addons[addon.Name] == nil && len(c.addons) == addonLimit {
		c.problem(at, "there are more than %d add-ons", addonLimit)
		return false
	}
	if c.versions += len(addon.Versions); c.versions > versionsLimit {
		c.problem(at, "all add-ons together have more than %d versions", versionsLimit)
		return false
	}
	if c.written[addon.Name] += written; c.written[addon.Name] > writtenLimit {
		c.problem(at, "add-on %q has more than %d bytes with its aliases expanded: no API server can store that", addon.Name, writtenLimit)
		return false
	}
	return true
}

func (c *collection) content() (*Content, error) {
	if len(c.problems) > 0 {
		return nil, &InvalidError{c.problems}
	}
	found := &Content{Files: c.files, Objects: c.objects, places: c.places, core: c.core}
	for _, addon := range c.addons {
		found.Addons = append(found.Addons, *addon)
	}
	slices.SortFunc(found.Addons, func(a, b v1.Addon) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
