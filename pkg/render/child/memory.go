package child

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
)

// memory is a file system of received bytes.
type memory struct{ nodes map[string]*node }

// node is a file or a folder; it is its own fs.FileInfo and fs.DirEntry.
type node struct {
	path    string
	folder  bool
	omitted bool
	data    []byte
	below   []fs.DirEntry
	sorted  bool
}

func newMemory() *memory {
	return &memory{nodes: map[string]*node{".": {path: ".", folder: true}}}
}

// add adds a file and the folders above it.
func (m *memory) add(name string, data []byte, omitted bool) error {
	if !fs.ValidPath(name) || name == "." || m.nodes[name] != nil {
		return &render.ProtocolError{Problem: "a path that is not valid, or that is used twice"}
	}
	folder, err := m.folder(path.Dir(name))
	if err != nil {
		return err
	}
	file := &node{path: name, data: data, omitted: omitted}
	m.nodes[name] = file
	folder.below, folder.sorted = append(folder.below, file), false
	return nil
}

func (m *memory) folder(name string) (*node, error) {
	if found := m.nodes[name]; found != nil {
		if !found.folder {
			return nil, &render.ProtocolError{Problem: "a file below a file"}
		}
		return found, nil
	}
	above, err := m.folder(path.Dir(name))
	if err != nil {
		return nil, err
	}
	made := &node{path: name, folder: true}
	m.nodes[name] = made
	above.below, above.sorted = append(above.below, made), false
	return made, nil
}

func (m *memory) Open(name string) (fs.File, error) {
	found := m.nodes[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	case found == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case found.omitted:
		return nil, &fs.PathError{Op: "open", Path: name, Err: &render.LimitError{What: "bytes of content", Max: maxContentBytes - 1}}
	case found.folder:
		return &openedFolder{node: found, left: found.entries()}, nil
	}
	return &opened{node: found, Reader: bytes.NewReader(found.data)}, nil
}

func (n *node) entries() []fs.DirEntry {
	if !n.sorted {
		slices.SortFunc(n.below, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		n.sorted = true
	}
	return slices.Clone(n.below)
}

// Name implements fs.DirEntry and fs.FileInfo.
func (n *node) Name() string { return path.Base(n.path) }

// IsDir implements fs.DirEntry and fs.FileInfo.
func (n *node) IsDir() bool { return n.folder }

func (n *node) Type() fs.FileMode { return n.Mode().Type() }

func (n *node) Info() (fs.FileInfo, error) { return n, nil }

func (n *node) Size() int64 { return int64(len(n.data)) }

// ModTime implements fs.FileInfo; no renderer may depend on it.
func (n *node) ModTime() time.Time { return time.Time{} }

func (n *node) Sys() any { return nil }

func (n *node) Mode() fs.FileMode {
	if n.folder {
		return fs.ModeDir | 0o500
	}
	return 0o400
}

type opened struct {
	*bytes.Reader
	node *node
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.node, nil }

func (o *opened) Close() error { return nil }

// openedFolder is an open folder, with the entries that were not read yet.
type openedFolder struct {
	node *node
	left []fs.DirEntry
}

func (o *openedFolder) Stat() (fs.FileInfo, error) { return o.node, nil }

func (o *openedFolder) Close() error { return nil }

// Read implements fs.File; a folder has nothing to read.
func (o *openedFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: o.node.path, Err: fs.ErrInvalid}
}

func (o *openedFolder) ReadDir(most int) ([]fs.DirEntry, error) {
	count := len(o.left)
	if most > 0 {
		count = min(count, most)
	}
	entries := o.left[:count]
	o.left = o.left[count:]
	if most > 0 && count == 0 {
		return nil, io.EOF
	}
	return entries, nil
}

var (
	_ fs.File        = (*opened)(nil)
	_ fs.ReadDirFile = (*openedFolder)(nil)
)
