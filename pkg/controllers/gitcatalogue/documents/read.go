// Package documents reads the add-ons of a catalogue in git: every *.yaml of a folder, in lexical
// order, each with documents of kind AddonCatalogue, of which only spec.addons counts, or plain
// lists of add-ons.
//
// It decodes strictly and within limits, since people who may push to a repository may do no more.
// Every error has file and line, and quotes names but never values.
package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/turns"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Limits of a folder.
const (
	fileLimit     = 1 << 20
	folderLimit   = 16 << 20
	filesLimit    = 2000
	documentLimit = 1024 // of one file
	addonLimit    = 512  // as in spec.addons
	versionLimit  = 128  // of one add-on, as in spec.addons[].versions
	versionsLimit = 8192 // of the folder
	// writtenLimit bounds one add-on with its aliases written out: etcd takes 1.5 MiB at most.
	writtenLimit = 1 << 20
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

// Problem is one thing that is wrong with a folder.
type Problem struct {
	Place Place
	// Message says what is wrong and, where that is not obvious, what to do.
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
	places map[[2]string]Place
}

// Place says where an add-on is first, or one of its versions, where version is not empty.
func (c *Content) Place(addon, version string) Place {
	if place, ok := c.places[[2]string{addon, catalogue.Key(version)}]; ok && version != "" {
		return place
	}
	return c.places[[2]string{addon}]
}

// IsRead says whether a file of a folder is read.
func IsRead(name string) bool { return path.Ext(name) == ".yaml" }

// decoding are turns to decode a file, of which a document takes up to 150 MiB: of a process, one is at a time.
var decoding = turns.Turns{Most: 1}

// Read reads a folder. Errors: *InvalidError where its files are wrong; others are the folder's or the context's.
func Read(ctx context.Context, folder fs.FS) (*Content, error) {
	found := collection{budget: strictyaml.NewBudget(folderLimit)}
	size := 0
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !IsRead(name) {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found.files++
		switch size += int(min(info.Size(), folderLimit)); {
		case info.Size() > fileLimit:
			return found.refuse(Place{File: name}, "the file has %d bytes, more than %d: split it", info.Size(), fileLimit)
		case size > folderLimit:
			return found.refuse(Place{File: name}, "the files have more than %d bytes together", folderLimit)
		case found.files > filesLimit:
			return found.refuse(Place{File: name}, "there are more than %d files", filesLimit)
		}
		end, err := decoding.Take(ctx, "")
		if err != nil {
			return err
		}
		defer end()
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		found.file(name, content)
		return nil
	})
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return nil, invalid
	}
	if err != nil {
		return nil, fmt.Errorf("reading the folder: %w", err)
	}
	return found.content()
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
			begin = start[0] + len("---") // what follows on the line is part of the document
		}
	}
}
