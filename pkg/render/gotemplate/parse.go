package gotemplate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/trellis-addons/trellis/pkg/render"
)

// parse parses all files into one set, each file alone first, so that an error has its file.
func (r *rendering) parse(files []file) error {
	functions := r.functions()
	r.set = template.New("").Funcs(functions)
	definedIn := map[string]string{}
	for _, file := range files {
		parsed, err := template.New(file.path).Funcs(functions).Parse(file.text)
		if err != nil {
			return r.templateError(file, err, render.StageContent)
		}
		for _, defined := range sortedTemplates(parsed) {
			before, twice := definedIn[defined.Name()]
			if twice && parse.IsEmptyTree(defined.Root) {
				continue
			}
			if twice {
				problem := fmt.Sprintf("defines %q, as %s does: give one of them another name", defined.Name(), before)
				return &render.TemplateError{File: file.path, Problem: problem, Stage: render.StageContent}
			}
			definedIn[defined.Name()] = file.path
			defined.Root = marker{places: &r.places, file: file}.list(defined.Root)
			if _, err := r.set.AddParseTree(defined.Name(), defined.Tree); err != nil {
				return r.templateError(file, err, render.StageContent)
			}
		}
	}
	r.set.Funcs(template.FuncMap{markFunction: func(int) (string, error) { return "", nil }})
	return nil
}

func sortedTemplates(set *template.Template) []*template.Template {
	parsed := slices.DeleteFunc(set.Templates(), func(one *template.Template) bool { return one.Tree == nil })
	slices.SortFunc(parsed, func(a, b *template.Template) int { return strings.Compare(a.Name(), b.Name()) })
	return parsed
}

const (
	// extension is the extension of templates, as in KKP.
	extension = ".yaml"
	// maxTemplateBytes is the limit for all files together.
	maxTemplateBytes = 16 << 20
	maxFiles         = 5000
)

// Wants reports whether a file of an add-on's content is a template.
func Wants(path string) bool { return strings.HasSuffix(path, extension) }

// file is one template.
type file struct {
	path, text string
}

// readFiles reads all templates, in lexical order. Links are not followed.
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
