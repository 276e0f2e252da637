package gotemplate

import (
	"fmt"
	"io"
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
		text, err := readAtMost(content, path, left)
		if err != nil {
			return err
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

func readAtMost(content fs.FS, path string, most int64) (string, error) {
	opened, err := content.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening %q: %w", path, err)
	}
	defer func() { _ = opened.Close() }()
	text, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", path, err)
	}
	if int64(len(text)) > most {
		return "", &render.LimitError{What: "bytes of template files", Max: maxTemplateBytes}
	}
	return string(text), nil
}
