package rendering

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/bench/installing"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/rendering"
)

func TestMain(m *testing.M) { rendering.Main(m) }

// objects of the measured chart.
const objects = 100

// deployment is a template as charts of the wild have it: helpers, values, loops, toYaml.
const deployment = `{{- $item := %d }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "demo.name" . }}-{{ $item }}
  labels: {{- include "demo.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector: {matchLabels: {app: {{ include "demo.name" . | quote }}, item: {{ $item | quote }}}}
  template:
    metadata:
      labels: {{- include "demo.labels" . | nindent 8 }}
        item: {{ $item | quote }}
      annotations: {checksum: {{ toJson .Values.settings | sha256sum }}}
    spec:
      containers:
      {{- range $name := list "main" "sidecar" }}
      - name: {{ $name }}
        image: "{{ $.Values.image.repository }}:{{ $.Values.image.tag }}"
        args: {{- range $key, $value := $.Values.settings }}
        - --{{ $key }}={{ $value }}
        {{- end }}
        env:
        {{- range $key, $value := $.Values.settings }}
        - {name: {{ $key | upper | replace "-" "_" }}, value: {{ $value | quote }}}
        {{- end }}
        resources: {{- toYaml $.Values.resources | nindent 10 }}
        {{- with $.Values.probe }}
        livenessProbe: {{- toYaml . | nindent 10 }}
        {{- end }}
      {{- end }}
      {{- if .Capabilities.APIVersions.Has "policy/v1" }}
      priorityClassName: {{ .Values.priority }}
      {{- end }}
`

const helpers = `{{- define "demo.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}
{{- define "demo.labels" -}}
app: {{ include "demo.name" . | quote }}
chart: {{ .Chart.Name }}-{{ .Chart.Version }}
heritage: {{ .Release.Service }}
{{- end }}
`

const chartValues = `replicas: 2
image: {repository: example.com/demo, tag: "1.2"}
settings: {log-level: info, bind: "0.0.0.0:8080", cache-size: 100Mi, region: eu-west, mode: fast}
resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
probe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10}
priority: normal
`

// bigChart has so many objects, each in a file of its own.
func bigChart() fstest.MapFS {
	content := fstest.MapFS{
		"Chart.yaml":             {Data: []byte("apiVersion: v2\nname: demo\nversion: 1.2.3\n")},
		"values.yaml":            {Data: []byte(chartValues)},
		"templates/_helpers.tpl": {Data: []byte(helpers)},
	}
	for i := range objects {
		content[fmt.Sprintf("templates/deployment-%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, deployment, i)}
	}
	return content
}

func chartInput(content fs.FS, tenant string) render.Input {
	return render.Input{
		Addon: "demo", Tenant: tenant, Content: content, Values: map[string]any{"replicas": int64(3)},
		Data:         templatedata.Data{Cluster: templatedata.ClusterData{Name: "47s2ddlfgj"}},
		Release:      render.Release{Name: "my-release", Namespace: "my-namespace", Revision: 1, IsInstall: true},
		Capabilities: render.Capabilities{KubeVersion: "v1.36.3", APIVersions: []string{"v1", "apps/v1", "policy/v1"}},
	}
}

// helmInProcess is what a controller does that uses Helm's SDK: load, merge values, render, sort, and read the objects.
func helmInProcess(content fs.FS) (int, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(content, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(content, path)
		files = append(files, &loader.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return 0, err
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return 0, err
	}
	given := map[string]any{"replicas": 3}
	if err := chartutil.ProcessDependencies(chart, given); err != nil {
		return 0, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = []string{"v1", "apps/v1", "policy/v1"}
	values, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "my-release", Namespace: "my-namespace"}, capabilities)
	if err != nil {
		return 0, err
	}
	rendered, err := engine.Engine{}.Render(chart, values)
	if err != nil {
		return 0, err
	}
	_, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return 0, err
	}
	var text strings.Builder
	for _, manifest := range manifests {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", manifest.Name, manifest.Content)
		object := &unstructured.Unstructured{}
		encoded, err := yaml.YAMLToJSON([]byte(manifest.Content))
		if err != nil {
			return 0, err
		}
		if err := object.UnmarshalJSON(encoded); err != nil {
			return 0, err
		}
	}
	return len(manifests), nil
}

// sideBySide measures both in turns, so that what else the machine does hits both, and gives the medians.
func sideBySide(t testing.TB, rounds int) (inChild, inProcess time.Duration) {
	t.Helper()
	content := bigChart()
	renderer := rendering.Pool(t, child.Options{}).Renderer(rendering.Helm, child.AllFiles)
	var children, processes []time.Duration
	for round := range rounds + 2 {
		begun := time.Now()
		result, err := renderer.Render(t.Context(), chartInput(content, "cluster-a"))
		took := time.Since(begun)
		if err != nil || len(result.Objects) != objects {
			t.Fatalf("%d objects, %v", len(result.Objects), err)
		}
		begun = time.Now()
		count, err := helmInProcess(content)
		if err != nil || count != objects {
			t.Fatalf("%d objects, %v", count, err)
		}
		if round < 2 {
			continue // warming up
		}
		children, processes = append(children, took), append(processes, time.Since(begun))
	}
	slices.Sort(children)
	slices.Sort(processes)
	return children[len(children)/2], processes[len(processes)/2]
}

// BenchmarkChart prints the bar of rendering: a chart of 100 objects, warm in the child, against Helm's SDK in process.
func BenchmarkChart(b *testing.B) {
	for b.Loop() {
		inChild, inProcess := sideBySide(b, 41)
		b.Logf("a chart of %d objects, medians of 41: %s in the child, %s with Helm's SDK in process", objects, inChild, inProcess)
		bar.None(b, "child-ms", float64(inChild.Microseconds())/1000)
		bar.None(b, "sdk-ms", float64(inProcess.Microseconds())/1000)
		bar.AtMost(b, "ratio", inChild.Seconds()/inProcess.Seconds(), 1.3)
	}
}

// processorTimes are what renderings in the child, and as many in this process, take of all processors: other processes change a duration,
// and not these.
func processorTimes(t testing.TB, renderings int) (inChild, inProcess time.Duration) {
	t.Helper()
	content := bigChart()
	renderer := rendering.Pool(t, child.Options{}).Renderer(rendering.Helm, child.AllFiles)
	spent := func(do func() (int, error)) time.Duration {
		before := installing.UsageOf(t, os.Getpid()).CPU
		for range renderings {
			if count, err := do(); err != nil || count != objects {
				t.Fatalf("%d objects, %v", count, err)
			}
		}
		return installing.UsageOf(t, os.Getpid()).CPU - before
	}
	inChildren := func() (int, error) {
		result, err := renderer.Render(t.Context(), chartInput(content, "cluster-a"))
		return len(result.Objects), err
	}
	for range 2 { // warming up
		if _, err := inChildren(); err != nil {
			t.Fatal(err)
		}
	}
	return spent(inChildren), spent(func() (int, error) { return helmInProcess(content) })
}

// TestChartIsAboutAsFast holds a bar on processor time, child and this process together.
func TestChartIsAboutAsFast(t *testing.T) {
	long.Skip(t, "proportions", "renderings are timed")
	inChild, inProcess := processorTimes(t, 20)
	t.Logf("of processors: %s by way of the child, %s in process", inChild, inProcess)
	if ratio := inChild.Seconds() / inProcess.Seconds(); ratio > 4 {
		t.Errorf("the child takes %.1f times as long as Helm in process", ratio)
	}
}
