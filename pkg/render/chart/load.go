package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// Limits of a chart's folder.
const (
	// maxFileBytes is Helm's own limit.
	maxFileBytes  = 5 << 20
	maxChartBytes = 64 << 20
	maxFiles      = 20_000
	maxYAMLDepth  = 256
)

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

func load(content fs.FS) (*helmchart.Chart, error) {
	files, err := readFiles(content)
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		problem := "can't be loaded: " + err.Error()
		if _, found := fs.Stat(content, "Chart.yaml"); errors.Is(found, fs.ErrNotExist) {
			problem += ": check that the source's path is the folder of the chart, or set template.method to go-template"
		}
		return nil, &render.ChartError{Problem: problem, Stage: render.StageContent}
	}
	if kind := loaded.Metadata.Type; kind != "" && kind != "application" {
		problem := fmt.Sprintf("has type %q: only applications can be installed", kind)
		return nil, &render.ChartError{Chart: loaded.Name(), Problem: problem, Stage: render.StageContent}
	}
	return loaded, checkDependencies(loaded)
}

func checkDependencies(loaded *helmchart.Chart) error {
	vendored := map[string]bool{}
	for _, dependency := range loaded.Dependencies() {
		vendored[dependency.Name()] = true
	}
	var missing []string
	for _, wanted := range loaded.Metadata.Dependencies {
		if !vendored[wanted.Name] {
			missing = append(missing, wanted.Name)
		}
	}
	if len(missing) > 0 {
		return &render.DependenciesMissingError{Chart: loaded.Name(), Missing: missing}
	}
	return nil
}

// readFiles reads all regular files that .helmignore does not name.
func readFiles(content fs.FS) ([]*loader.BufferedFile, error) {
	rules, err := ignoreRules(content)
	if err != nil {
		return nil, err
	}
	var files []*loader.BufferedFile
	left := int64(maxChartBytes)
	err = fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if skip, err := ignored(rules, name, entry); skip || err != nil {
			return err
		}
		file, err := readFile(content, name, left)
		if err != nil {
			return err
		}
		left -= int64(len(file.Data))
		if files = append(files, file); len(files) > maxFiles {
			return &render.LimitError{What: "files in a chart", Max: maxFiles}
		}
		return nil
	})
	return files, err
}

// ignored reports whether a file is left out; a folder is left out with all its content.
func ignored(rules *ignore.Rules, name string, entry fs.DirEntry) (bool, error) {
	info, err := entry.Info()
	if err != nil {
		return false, err
	}
	skip := rules.Ignore(name, info)
	if entry.IsDir() && skip {
		return true, fs.SkipDir
	}
	return skip || !entry.Type().IsRegular(), nil
}

func ignoreRules(content fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file, err := readFile(content, ignore.HelmIgnore, maxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if rules, err = ignore.Parse(bytes.NewReader(file.Data)); err != nil {
			return nil, &render.ChartError{Problem: "has a .helmignore that can't be read: " + err.Error(), Stage: render.StageContent}
		}
	}
	rules.AddDefaults()
	return rules, nil
}

func readFile(content fs.FS, name string, left int64) (*loader.BufferedFile, error) {
	text, whole, err := render.ReadAtMost(content, name, min(left, maxFileBytes))
	switch {
	case err != nil:
		return nil, err
	case !whole && left >= maxFileBytes:
		return nil, &render.LimitError{What: fmt.Sprintf("bytes in chart file %q", name), Max: maxFileBytes}
	case !whole:
		return nil, &render.LimitError{What: "bytes in a chart", Max: maxChartBytes}
	}
	data := bytes.TrimPrefix([]byte(text), byteOrderMark)
	return &loader.BufferedFile{Name: name, Data: data}, checkYAML(name, data)
}

// checkYAML refuses files that decode to something large or deep. Helm reports other mistakes.
func checkYAML(name string, data []byte) error {
	switch path.Base(name) {
	case "Chart.yaml", "values.yaml", "requirements.yaml", "Chart.lock", "requirements.lock":
	default:
		return nil
	}
	problem := strictyaml.Inspect(data, strictyaml.Limits{Bytes: maxFileBytes, Depth: maxYAMLDepth, Duplicates: true})
	if problem != nil {
		return &render.TemplateError{File: name, Line: problem.Line, Problem: problem.Problem, Stage: render.StageContent}
	}
	return nil
}
