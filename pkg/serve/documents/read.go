// Package documents reads the add-ons of files, such as those of a catalogue in git: every *.yaml of a folder, in
// lexical order, each with documents of kind AddonCatalogue, of which spec.addons counts, or plain lists of add-ons.
// Content.Check checks them as admission does.
//
// It decodes strictly and within limits, since users who may push to a repository have no other rights. Every error
// has file and line, and quotes names but never values.
package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// FileLimit is the largest file, in bytes.
const FileLimit = 1 << 20

// Limits of a folder.
const (
	folderLimit   = 16 << 20
	filesLimit    = 2000
	documentLimit = 1024 // of one file
	addonLimit    = 512  // as in spec.addons
	versionLimit  = 128  // of one add-on, as in spec.addons[].versions
	versionsLimit = 8192 // of the folder
	// writtenLimit bounds one add-on with its aliases expanded: etcd takes 1.5 MiB at most.
	writtenLimit = 1 << 20
	objectsKept  = 100
)

// Place is a line of a file.
type Place struct {
	// File is relative to the folder; Line counts from 1, 0 is unknown.
	File string
	Line int
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s line %d", p.File, p.Line)
}

// Problem is one problem of a folder.
type Problem struct {
	Place Place
	// Message says what is wrong and, if that is not obvious, how to fix it.
	Message string
}

func (p Problem) String() string {
	if p.Place.File == "" {
		return p.Message
	}
	return fmt.Sprintf("%s: %s", p.Place, p.Message)
}

// Content are the add-ons of a folder.
type Content struct {
	// Addons by name, each with its versions of all documents.
	Addons []v1.Addon
	Files  int
	// Objects are the documents of kind AddonCatalogue, the first of them if there are many, without their add-ons.
	Objects []Object
	places  map[[2]string]Place
	core    map[v1.AddonName]bool
	read    reader
}

// Object is an AddonCatalogue that a document has.
type Object struct {
	Place Place
	Name  string
	Spec  v1.AddonCatalogueSpec
}

// Place is the first place of an add-on, or of one of its versions if version is not empty.
func (c *Content) Place(addon, version string) Place {
	if place, ok := c.places[[2]string{addon, catalogue.Key(version)}]; ok && version != "" {
		return place
	}
	return c.places[[2]string{addon}]
}

// IsRead says whether a file of a folder is read.
func IsRead(name string) bool { return path.Ext(name) == ".yaml" }

// decoding are the turns for decoding files: one at a time in a process, since a document takes up to 150 MiB.
var decoding = turns.Turns{Most: 1}

// reader adds what files have to a collection.
type reader func(ctx context.Context, found *collection) error

// Read reads a folder. Errors: *InvalidError if its files are wrong; others are the folder's or the context's.
func Read(ctx context.Context, folder fs.FS) (*Content, error) {
	return read(ctx, func(ctx context.Context, found *collection) error {
		return fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
			if err = cmp.Or(err, ctx.Err()); err != nil || !entry.Type().IsRegular() || !IsRead(name) {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return found.take(ctx, name, info.Size(), func() ([]byte, error) { return fs.ReadFile(folder, name) })
		})
	})
}

// ReadFile reads one file, whatever its name ends in. The content may be cut after FileLimit and a byte; size is that of
// the whole file, in bytes. Errors: as Read.
func ReadFile(ctx context.Context, name string, size int64, content []byte) (*Content, error) {
	return read(ctx, func(ctx context.Context, found *collection) error {
		return found.take(ctx, name, size, func() ([]byte, error) { return content, nil })
	})
}

func read(ctx context.Context, files reader) (*Content, error) {
	found := newCollection()
	err := files(ctx, found)
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return nil, invalid
	}
	if err != nil {
		return nil, fmt.Errorf("reading the folder: %w", err)
	}
	content, err := found.content()
	if err != nil {
		return nil, err
	}
	content.read = files
	return content, nil
}

func newCollection() *collection {
	return &collection{budget: strictyaml.NewBudget(folderLimit), core: map[v1.AddonName]bool{}}
}

// take reads one more file, of this size in bytes, within the limits of a folder.
func (c *collection) take(ctx context.Context, name string, size int64, read func() ([]byte, error)) error {
	c.files++
	switch c.size += int(min(size, folderLimit)); {
	case size > FileLimit:
		return c.refuse(Place{File: name}, "the file has %d bytes, more than %d: split it", size, FileLimit)
	case c.size > folderLimit:
		return c.refuse(Place{File: name}, "the files have more than %d bytes together", folderLimit)
	case c.files > filesLimit:
		return c.refuse(Place{File: name}, "there are more than %d files", filesLimit)
	}
	end, err := decoding.Take(ctx, "")
	if err != nil {
		return err
	}
	defer end()
	content, err := read()
	if err != nil {
		return err
	}
	c.file(name, content)
	return nil
}

// separator starts a document: three dashes do so even inside of a text block.
var separator = regexp.MustCompile(`(?m)^---([ \t].*)?\r?$`)

func (c *collection) file(name string, content []byte) {
	starts := separator.FindAllIndex(content, documentLimit+1)
	if len(starts) > documentLimit {
		c.problem(Place{File: name}, "there are more than %d documents in the file", documentLimit)
		return
	}
	begin, line := 0, 0
	for _, start := range append(starts, []int{len(content), len(content)}) {
		if c.full {
			return
		}
		c.document(name, line, content[begin:start[0]])
		line += bytes.Count(content[begin:start[0]], []byte("\n"))
		begin = start[0]
		if start[1] > start[0] {
			begin = start[0] + len("---") // the rest of the line is part of the document
		}
	}
}
