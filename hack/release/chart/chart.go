// Package chart packs charts of a release: version, appVersion and image are those of one build, and
// equal files give equal bytes, which Helm's own packing does not, since it writes the time of day.
package chart

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/trellis-addons/trellis/hack/images/archive"
)

// Image is what a chart runs.
type Image struct {
	// Repository is the host and path without tag.
	Repository string
	// Digest is the index's, such as sha256:0123….
	Digest string
}

// Chart is a chart of a release.
type Chart struct {
	loaded *chart.Chart
	files  []*loader.BufferedFile
}

// Read reads a chart's folder, as Helm does, less what .helmignore names, and puts version and image
// into it. They are put into the text, so that comments stay.
func Read(folder, version string, image Image) (Chart, error) {
	found, err := loader.LoadDir(folder)
	if err != nil {
		return Chart{}, fmt.Errorf("reading chart %q: %w", folder, err)
	}
	edits := map[string][]edit{
		"Chart.yaml":  {{"version", version}, {"appVersion", version}},
		"values.yaml": {{"  repository", image.Repository}, {"  digest", `"` + image.Digest + `"`}},
	}
	var files []*loader.BufferedFile
	for _, raw := range found.Raw {
		file := &loader.BufferedFile{Name: raw.Name, Data: raw.Data}
		for _, one := range edits[raw.Name] {
			if file.Data, err = one.in(file.Data); err != nil {
				return Chart{}, fmt.Errorf("%s of chart %q: %w", raw.Name, folder, err)
			}
		}
		files = append(files, file)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return Chart{}, fmt.Errorf("reading chart %q with version and image of the release: %w", folder, err)
	}
	return Chart{loaded, files}, nil
}

// edit puts a value in place of the only one of a key, which comes with its indentation.
type edit struct{ key, value string }

func (e edit) in(text []byte) ([]byte, error) {
	line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(e.key) + ": .*$")
	if found := len(line.FindAll(text, -1)); found != 1 {
		return nil, fmt.Errorf("there are %d lines of %q, and one was expected", found, e.key)
	}
	return line.ReplaceAllLiteral(text, []byte(e.key+": "+e.value)), nil
}

// Archive is the chart as Helm packs it, with one time for all files.
func (c Chart) Archive(date time.Time) ([]byte, error) {
	var files []archive.File
	for _, file := range c.files {
		files = append(files, archive.File{Name: c.loaded.Name() + "/" + file.Name, Data: file.Data})
	}
	var packed bytes.Buffer
	if err := archive.Write(&packed, files, archive.WithoutFolders, date); err != nil {
		return nil, fmt.Errorf("packing chart %q: %w", c.loaded.Name(), err)
	}
	return packed.Bytes(), nil
}

// Name of the chart.
func (c Chart) Name() string { return c.loaded.Name() }

// CRDs are the chart's CustomResourceDefinitions, each a text.
func (c Chart) CRDs() []string {
	var texts []string
	for _, crd := range c.loaded.CRDObjects() {
		texts = append(texts, string(crd.File.Data))
	}
	return texts
}

// Render gives the texts of the chart's objects, as installed into a namespace under the chart's name
// by a service such as clusterctl, in the order of their files.
func (c Chart) Render(namespace, service string, values map[string]any) ([]string, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	// The oldest release of Kubernetes that the chart takes.
	oldest := strings.TrimSuffix(strings.TrimPrefix(c.loaded.Metadata.KubeVersion, ">= "), "-0")
	version, err := chartutil.ParseKubeVersion(oldest)
	if err != nil {
		return nil, fmt.Errorf("reading kubeVersion of chart %q: %w", c.Name(), err)
	}
	capabilities.KubeVersion = *version
	options := chartutil.ReleaseOptions{Name: c.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	merged, err := chartutil.ToRenderValues(c.loaded, values, options, capabilities)
	if err != nil {
		return nil, fmt.Errorf("values of chart %q: %w", c.Name(), err)
	}
	if release, ok := merged["Release"].(map[string]any); ok {
		release["Service"] = service
	}
	rendered, err := engine.Engine{Strict: true}.Render(c.loaded, merged)
	if err != nil {
		return nil, fmt.Errorf("rendering chart %q: %w", c.Name(), err)
	}
	var texts []string
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(file, ".yaml") {
			texts = append(texts, rendered[file])
		}
	}
	return texts, nil
}
