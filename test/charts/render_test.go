package charts

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// namespace is the platform namespace that the charts are rendered for.
const namespace = "kubermatic"

// rendering is one chart with values.
type rendering struct {
	chart, why string
	values     map[string]any
}

func (r rendering) String() string { return r.chart + ", " + r.why }

var renderings = []rendering{
	{chart: "trellis-master", why: "as it is"},
	{chart: "trellis-master", why: "standalone", values: map[string]any{
		"standalone": map[string]any{"enabled": true, "kkpVersion": "2.31.0"}, "workerName": "lab",
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"}, "imagePullSecrets": []any{map[string]any{"name": "pull"}},
	}},
	{chart: "trellis-seed", why: "as it is"},
	{chart: "trellis-seed", why: "standalone", values: map[string]any{
		"standalone": map[string]any{"enabled": true}, "driftInterval": "10s", "workerName": "lab", "allowPrereleases": true,
		"sources":     map[string]any{"allowCIDRs": []any{"10.0.0.0/8", "fd00::/8"}, "allowInsecure": true},
		"tolerations": []any{map[string]any{"operator": "Exists"}},
		"query": map[string]any{
			"tlsSecret": "query-tls", "audiences": []any{"trellis"}, "service": map[string]any{"type": "LoadBalancer", "port": 8443},
		},
	}},
}

// load reads a chart of the checkout.
func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
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
		t.Fatalf("reading chart %q: %v", name, err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatalf("loading chart %q: %v", name, err)
	}
	return loaded
}

// render gives the chart's CRDs and objects, in the order of their files.
func render(t *testing.T, r rendering) (crds, objects []*unstructured.Unstructured) {
	t.Helper()
	loaded := load(t, r.chart)
	for _, crd := range loaded.CRDObjects() {
		crds = append(crds, documents(t, crd.Filename, string(crd.File.Data))...)
	}
	files, err := renderFiles(loaded, r.values)
	if err != nil {
		t.Fatalf("rendering %s: %v", r, err)
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, documents(t, name, files[name])...)
		}
	}
	return crds, objects
}

func renderFiles(loaded *chart.Chart, values map[string]any) (map[string]string, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v" + binaries.Older, Major: "1", Minor: "36"}
	options := chartutil.ReleaseOptions{Name: loaded.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	merged, err := chartutil.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(loaded, merged)
}

func documents(t *testing.T, name, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for part := range strings.SplitSeq("\n"+text, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
			t.Fatalf("parsing %q: %v\n%s", name, err, part)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

func TestValuesSchemaRefusesMistakes(t *testing.T) {
	mistakes := map[string]map[string]any{
		"unknown key":     {"replica": 2},
		"unknown sub-key": {"image": map[string]any{"repository": "x", "tga": "1"}},
		"wrong type":      {"replicas": "two"},
		"no image":        {"image": map[string]any{"repository": ""}},
		"no namespace":    {"catalogueNamespace": "Upper_Case"},
	}
	for _, name := range []string{"trellis-master", "trellis-seed"} {
		for why, values := range mistakes {
			if _, err := renderFiles(load(t, name), values); err == nil {
				t.Errorf("%s accepts values with %s: %v", name, why, values)
			}
		}
	}
}

func TestNotesRender(t *testing.T) {
	for _, r := range renderings {
		files, err := renderFiles(load(t, r.chart), r.values)
		if err != nil {
			t.Fatal(err)
		}
		notes := files[r.chart+"/templates/NOTES.txt"]
		if !strings.Contains(notes, "kubectl apply --server-side -f crds/") {
			t.Errorf("the notes of %s do not say how to upgrade CRDs:\n%s", r, notes)
		}
	}
}

func TestChartsShareTheirCatalogueCRD(t *testing.T) {
	master, seed := load(t, "trellis-master").CRDObjects(), load(t, "trellis-seed").CRDObjects()
	if len(master) != 1 || len(seed) != 2 {
		t.Fatalf("the master's chart has %d CRDs and the seed's %d, expected 1 and 2", len(master), len(seed))
	}
	if !bytes.Equal(master[0].File.Data, seed[0].File.Data) {
		t.Errorf("both charts have AddonCatalogue, and not the same: run `make generate`")
	}
}
