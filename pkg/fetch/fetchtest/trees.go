package fetchtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// paddingOfTar is the most padding that tar programs append.
const paddingOfTar = 64 << 10

type node struct {
	name, mode, content string
	folder              bool
	below               []*node
}

// Tree writes a case as git trees, with its names in archive order, and returns the top's hash. It is not ok if git
// can't represent it: devices, hard links and packing.
func (c Case) Tree(r *Repository) (top string, ok bool) {
	inflater, err := gzip.NewReader(bytes.NewReader(c.Archive))
	if err != nil {
		return "", false
	}
	root := &node{folder: true}
	reader := tar.NewReader(inflater)
	for count := 0; ; count++ {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || count > 1000 {
			return "", false
		}
		if !root.add(header, reader) {
			return "", false
		}
	}
	rest, err := io.ReadAll(inflater)
	if err != nil || len(rest) > paddingOfTar || len(bytes.Trim(rest, "\x00")) != 0 {
		return "", false
	}
	return root.write(r), true
}

func (n *node) add(header *tar.Header, from io.Reader) bool {
	leaf := &node{mode: "100644", content: header.Linkname}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeDir:
		return true // git has no empty folders
	case tar.TypeSymlink:
		leaf.mode = "120000"
	case tar.TypeReg:
		content, err := io.ReadAll(io.LimitReader(from, 1<<20))
		if err != nil || header.PAXRecords["GNU.sparse.major"] != "" {
			return false
		}
		leaf.content = string(content)
		if header.Mode&0o100 != 0 {
			leaf.mode = "100755"
		}
	default:
		return false
	}
	components := strings.Split(strings.TrimPrefix(header.Name, "./"), "/")
	if leaf.mode == "120000" {
		components = strings.Split(strings.TrimSuffix(header.Name, "/"), "/")
	}
	leaf.name = components[len(components)-1]
	parent := n
	for _, component := range components[:len(components)-1] {
		parent = parent.inner(component)
	}
	parent.below = append(parent.below, leaf)
	return true
}

func (n *node) inner(name string) *node {
	for _, child := range n.below {
		if child.folder && child.name == name {
			return child
		}
	}
	made := &node{name: name, mode: "40000", folder: true}
	n.below = append(n.below, made)
	return made
}

func (n *node) write(r *Repository) string {
	var tree bytes.Buffer
	for _, child := range n.below {
		var hash string
		if child.folder {
			hash = child.write(r)
		} else {
			hash = r.Object("blob", []byte(child.content))
		}
		raw, err := hex.DecodeString(hash)
		if err != nil {
			r.t.Fatalf("object %q: %v", hash, err)
		}
		tree.WriteString(child.mode + " " + child.name + "\x00")
		tree.Write(raw)
	}
	return r.Object("tree", tree.Bytes())
}
