package image

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch/archive"
)

// Names of whiteouts, from the image specification. Old metadata has the double prefix too.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	notes    = ".wh..wh."
)

// cover is how the layers so far cover a name.
type cover int

const (
	// implied is a folder that exists for its content.
	implied cover = iota + 1
	folder
	// closed hides the name and all below it: a file, or a whiteout.
	closed
)

// stack unpacks layers, the uppermost first.
type stack struct {
	into  *archive.Folder
	below string // the path of the reference
	found bool   // a visible entry is there
	limit int    // of remembered names

	// covers and opaques are from the layers above; the fresh ones are from the current layer.
	covers       map[string]cover
	opaques      map[string]bool
	freshCovers  map[string]cover
	freshOpaques map[string]bool
}

func newStack(into *archive.Folder, below string, limit int) *stack {
	return &stack{into: into, below: below, limit: limit, found: below == "", covers: map[string]cover{}, opaques: map[string]bool{}}
}

func (s *stack) add(ctx context.Context, from io.Reader, packing archive.Packing) error {
	s.freshCovers, s.freshOpaques = map[string]cover{}, map[string]bool{}
	if err := archive.Each(ctx, from, packing, s.into, s.entry); err != nil {
		return err
	}
	for name, cover := range s.freshCovers {
		s.covers[name] = max(cover, s.covers[name])
	}
	for name := range s.freshOpaques {
		s.opaques[name] = true
	}
	return nil
}

func (s *stack) entry(entry *archive.Entry) error {
	directory, name := path.Split(entry.Name)
	directory = strings.TrimSuffix(directory, "/")
	if strings.HasPrefix(name, whiteout) {
		return s.whiteout(directory, name)
	}
	if !s.matters(entry.Name) || s.hidden(entry.Name) {
		return nil
	}
	if strings.Contains("/"+directory, "/"+whiteout) {
		return archive.Refused(entry.Name, "it is in a whiteout")
	}
	if above := s.covers[entry.Name]; above != 0 && !entry.IsDirectory() {
		if above == implied {
			return archive.Refused(entry.Name, "it is a folder in one layer, but not in a lower layer")
		}
		return nil
	}
	if rule := s.visibleRule(entry); rule != "" {
		return archive.Refused(entry.Name, rule)
	}
	return s.unpack(entry)
}

// matters selects content at or below the path, and the folders above it.
func (s *stack) matters(name string) bool {
	return s.below == "" || name == s.below || strings.HasPrefix(name, s.below+"/") || strings.HasPrefix(s.below, name+"/")
}

// hidden says that a layer above has a file or whiteout at the name or a parent, or an opaque parent.
func (s *stack) hidden(name string) bool {
	if s.covers[name] == closed {
		return true
	}
	for above := name; above != ""; {
		above = parent(above)
		if s.opaques[above] || s.covers[above] == closed {
			return true
		}
	}
	return false
}

func parent(name string) string {
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		return name[:slash]
	}
	return ""
}

func (s *stack) visibleRule(entry *archive.Entry) string {
	if rule := entry.Rule(); rule != "" {
		if s.below != "" && (entry.Name == s.below || strings.HasPrefix(s.below, entry.Name+"/")) {
			return rule + ", and the path of the source leads through this entry"
		}
		return rule
	}
	if !entry.IsDirectory() && s.below != "" && !strings.HasPrefix(entry.Name, s.below+"/") {
		return "it is a file, but the path of a source has to be a folder"
	}
	return ""
}

func (s *stack) unpack(entry *archive.Entry) error {
	kind := closed
	if entry.IsDirectory() {
		kind = folder
	}
	if err := s.remember(entry.Name, kind); err != nil {
		return err
	}
	inner, isBelow := entry.Name, true
	if s.below != "" {
		inner, isBelow = strings.CutPrefix(entry.Name, s.below+"/")
	}
	s.found = s.found || isBelow || entry.Name == s.below
	if !isBelow {
		return nil
	}
	return entry.Unpack(s.into, inner)
}

func (s *stack) whiteout(directory, name string) error {
	switch {
	case name == opaque:
		if !s.matters(directory) && directory != "" {
			return nil
		}
		s.freshOpaques[directory] = true
		return s.bound(directory)
	case strings.HasPrefix(name, notes):
		return nil
	}
	hidden := strings.TrimPrefix(name, whiteout)
	if hidden == "" || hidden == "." || hidden == ".." {
		return archive.Refused(path.Join(directory, name), "it is a whiteout that names no file")
	}
	if hidden = path.Join(directory, hidden); !s.matters(hidden) {
		return nil
	}
	return s.remember(hidden, closed) // even if the layer has it again: old content stays hidden
}

// remember records how the current layer covers a name and its parents.
func (s *stack) remember(name string, kind cover) error {
	s.freshCovers[name] = max(kind, s.freshCovers[name])
	for above := parent(name); above != "" && s.freshCovers[above] == 0; above = parent(above) {
		s.freshCovers[above] = implied
	}
	return s.bound(name)
}

// bound limits the recorded names: whiteouts are no files, so Folder does not count them.
func (s *stack) bound(name string) error {
	if s.limit > 0 && len(s.covers)+len(s.freshCovers)+len(s.opaques)+len(s.freshOpaques) > 2*s.limit {
		return archive.Refused(name, fmt.Sprintf("there are more than %d files, folders and whiteouts", 2*s.limit))
	}
	return nil
}
