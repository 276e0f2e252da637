package gotemplate

import (
	"io/fs"
	"strings"

	"github.com/trellis-addons/trellis/pkg/render"
)

const (
	// extension of the files that count, as in KKP.
	extension = ".yaml"
	// maxTemplateBytes of all files together.
	maxTemplateBytes = 16 << 20
	maxFiles         = 5000
)

// Wants says whether a file of an add-on's content is a template.
func Wants(path string) bool { return strings.HasSuffix(path, extension) }

// file is one template.
type file struct {
	path, text string
}

// readFiles reads all templates below the root, in lexical order. Links are not followed.
func readFiles(content fs.FS) ([]file, error) {
	var files []file
	left := int64(maxTemplateBytes)
	err := fs.WalkDir(content, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !Wants(path) {
			return err
		}
		text, whole, err := render.ReadAtMost(content, path, left)
		if err != nil {
			return err
		}
		if !whole {
			return &render.LimitError{What: "bytes of template files", Max: maxTemplateBytes}
		}
		left -= int64(len(text))
		files = append(files, file{path: path, text: text})
		if len(files) > maxFiles {
			return &render.LimitError{What: "template files", Max: maxFiles}
		}
		return nil
	})
	return files, err
}
