package charts

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// Program is the name of the program that a chart runs.
func Program(chart string) string {
	if chart == "trellis-web" {
		return chart
	}
	return strings.TrimPrefix(chart, "trellis-") + "-controller-manager"
}

// Load reads a chart of the checkout by its name.
func Load(name string) (*chart.Chart, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	folder := os.DirFS(filepath.Join(root, "charts", name))
	var files []*loader.BufferedFile
	err = fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, path)
		files = append(files, &loader.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading chart %q: %w", name, err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("loading chart %q: %w", name, err)
	}
	return loaded, nil
}

// Render gives the CRDs and the objects, in the order of their files, of a chart that is installed into a namespace under
// its own name.
func Render(name, namespace string, values map[string]any) (crds, objects []*unstructured.Unstructured, err error) {
	loaded, err := Load(name)
	if err != nil {
		return nil, nil, err
	}
	for _, crd := range loaded.CRDObjects() {
		found, err := Documents(crd.Filename, string(crd.File.Data))
		if err != nil {
			return nil, nil, err
		}
		crds = append(crds, found...)
	}
	files, err := renderLoaded(loaded, namespace, values)
	if err != nil {
		return nil, nil, fmt.Errorf("rendering chart %q: %w", name, err)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		found, err := Documents(file, files[file])
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, found...)
	}
	return crds, objects, nil
}

func renderLoaded(loaded *chart.Chart, namespace string, values map[string]any) (map[string]string, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v" + binaries.Older, Major: "1", Minor: "36"}
	options := chartutil.ReleaseOptions{Name: loaded.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	merged, err := chartutil.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(loaded, merged)
}

// Documents reads the objects of a file, whose name errors tell.
func Documents(name, text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
			return nil, fmt.Errorf("parsing %q: %w\n%s", name, err, part)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}
