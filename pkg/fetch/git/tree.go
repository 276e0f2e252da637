package git

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
)

// Modes of tree entries, as git writes them. 100664 is in very old repositories.
var (
	fileModes   = []string{"100644", "100755", "100664"}
	folderModes = []string{"40000", "040000"}
)

const (
	modeLink      = "120000"
	modeSubmodule = "160000"
)

type entry struct {
	mode, name string
	hash       plumbing.Hash
}

type walk struct {
	pack       *pack
	into       *archive.Folder
	remote, at string
}

func (w *walk) write(commit plumbing.Hash, below string) error {
	tree, err := w.root(commit)
	if err != nil {
		return err
	}
	if below != "" {
		if tree, err = w.find(tree, below); err != nil {
			return err
		}
	}
	return w.folder(tree, "", below)
}

func (w *walk) find(tree plumbing.Hash, below string) (plumbing.Hash, error) {
	sofar := ""
	for component := range strings.SplitSeq(below, "/") {
		sofar = path.Join(sofar, component)
		var found *entry
		err := w.entries(tree, func(entry entry) error {
			if entry.name == component && found == nil {
				found = &entry
			}
			return nil
		})
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if found == nil {
			return plumbing.ZeroHash, &fetch.NotFoundError{What: fmt.Sprintf("path %q in %s at %s", below, w.remote, w.at)}
		}
		if rule := modeRule(found.mode); rule != "" {
			return plumbing.ZeroHash, w.refused(sofar, rule)
		}
		if !slices.Contains(folderModes, found.mode) {
			return plumbing.ZeroHash, w.refused(sofar, "it is a file, but the path of a source has to be a folder")
		}
		tree = found.hash
	}
	return tree, nil
}

func (w *walk) root(commit plumbing.Hash) (plumbing.Hash, error) {
	content, err := w.pack.small(commit, plumbing.CommitObject)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer w.pack.release(len(content))
	line, _, _ := bytes.Cut(content, []byte("\n"))
	hash, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !commitPattern.Match(hash) {
		return plumbing.ZeroHash, w.pack.refused("the commit names no tree")
	}
	return plumbing.NewHash(string(hash)), nil
}

// folder writes one tree and those below it. The rules on names bound its depth.
func (w *walk) folder(tree plumbing.Hash, name, below string) error {
	return w.entries(tree, func(entry entry) error {
		inner := path.Join(name, entry.name)
		full := path.Join(below, inner)
		if rule := entryRule(entry); rule != "" {
			return w.refused(full, rule)
		}
		if slices.Contains(folderModes, entry.mode) {
			if err := w.into.Directory(inner); err != nil {
				return err
			}
			return w.folder(entry.hash, inner, below)
		}
		return w.file(entry.hash, inner, full)
	})
}

func (w *walk) file(hash plumbing.Hash, name, full string) error {
	sniffer := &sniffer{}
	err := w.into.Write(name, func(into io.Writer) error {
		sniffer.into = into
		return w.pack.read(hash, plumbing.BlobObject, sniffer)
	})
	if err != nil {
		return err
	}
	if sniffer.isPointer() {
		return w.refused(full, "it is a pointer to git's large-file storage, which is not supported")
	}
	return nil
}

func (w *walk) refused(name, rule string) error {
	return &fetch.RefusedError{Subject: fmt.Sprintf("path %q in %s", name, w.remote), Rule: rule}
}

// entries iterates over a raw tree: mode, space, name, NUL, 20 bytes of hash. A decoded list would
// need several times the memory, at each level.
func (w *walk) entries(tree plumbing.Hash, visit func(entry) error) error {
	content, err := w.pack.small(tree, plumbing.TreeObject)
	if err != nil {
		return err
	}
	defer w.pack.release(len(content))
	for rest := content; len(rest) > 0; {
		mode, name, ok := bytes.Cut(rest, []byte(" "))
		if !ok {
			return w.malformed(tree)
		}
		name, hash, ok := bytes.Cut(name, []byte{0})
		if !ok || len(hash) < len(plumbing.Hash{}) {
			return w.malformed(tree)
		}
		line := entry{mode: string(mode), name: string(name)}
		rest = hash[copy(line.hash[:], hash):]
		if err := visit(line); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) malformed(tree plumbing.Hash) error {
	return w.pack.refused(fmt.Sprintf("tree %s is malformed", tree))
}

// entryRule refuses entries that are neither file nor folder, and names that no checkout may have.
func entryRule(entry entry) string {
	switch {
	case modeRule(entry.mode) != "":
		return modeRule(entry.mode)
	case strings.Contains(entry.name, "/"):
		return "the name has a slash"
	case isDotGit(entry.name):
		return "the name is reserved for git"
	}
	return archive.NameRule(entry.name)
}

func modeRule(mode string) string {
	switch {
	case slices.Contains(fileModes, mode), slices.Contains(folderModes, mode):
		return ""
	case mode == modeLink:
		return "symbolic links are refused: copy the target of the link, or offer the chart as a package of `helm package`, which follows links"
	case mode == modeSubmodule:
		return "submodules are refused"
	}
	return "its mode is neither that of a file nor that of a folder"
}

// dotGit matches names that some file system treats as ".git": case, trailing dots and spaces, a
// stream name, and NTFS' short form (CVE-2014-9390, CVE-2019-1352, CVE-2019-1353).
var dotGit = regexp.MustCompile(`^(\.git|git~[0-9]+)[. ]*(:.*)?$`)

func isDotGit(name string) bool {
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	return dotGit.MatchString(visible)
}

type sniffer struct {
	into io.Writer
	head []byte
}

const (
	pointerMark = "version https://git-lfs.github.com/spec/"
	headLimit   = len(pointerMark)
)

func (s *sniffer) Write(content []byte) (int, error) {
	if space := headLimit - len(s.head); space > 0 {
		s.head = append(s.head, content[:min(space, len(content))]...)
	}
	return s.into.Write(content)
}

func (s *sniffer) isPointer() bool { return string(s.head) == pointerMark }
