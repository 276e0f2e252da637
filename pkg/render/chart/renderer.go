package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
	"github.com/trellis-addons/trellis/pkg/render/redact"
)

const notesFile = "NOTES.txt"

// Renderer implements render.Renderer for method helm.
type Renderer struct{}

// New creates a renderer.
func New() Renderer { return Renderer{} }

// Render returns the chart's objects, those of crds/ first. Errors that only an edit solves are *render.ChartError,
// *render.TemplateError, *render.LimitError, *render.DependenciesMissingError and *render.NoManifestsError.
func (Renderer) Render(ctx context.Context, input render.Input) (result render.Result, err error) {
	redactor := redact.New(input.Values, input.Data, render.SecretTexts(input.Found)...)
	defer func() {
		// A panic of Helm over foreign text is an error of that chart.
		if trouble := recover(); trouble != nil {
			result, err = render.Result{}, &render.ChartError{Problem: "can't be rendered: " + redactor.Text(fmt.Sprint(trouble))}
		}
		err = withoutValues(redactor, err)
	}()
	if err := ctx.Err(); err != nil {
		return render.Result{}, err
	}
	quietly(func() { result, err = renderChart(input) })
	return result, err
}

func renderChart(input render.Input) (render.Result, error) {
	chart, err := load(input.Content)
	if err != nil {
		return render.Result{}, err
	}
	guard := newGuard(chart, input)
	if input.OtherMoment {
		atOtherMoment(chart)
	}
	config, err := helmValues(input.Values)
	if err != nil {
		return render.Result{}, err
	}
	if err := selectDependencies(chart, config); err != nil {
		return render.Result{}, err
	}
	reader := manifest.Reader{Duplicates: true}
	crds, err := readCRDs(&reader, chart)
	if err != nil {
		return render.Result{}, err
	}
	capabilities, err := capabilitiesOf(input.Capabilities, crds)
	if err != nil {
		return render.Result{}, err
	}
	if wanted := chart.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return render.Result{}, &render.ChartError{Chart: chart.Name(), Problem: fmt.Sprintf(
			"needs Kubernetes %s, the cluster has %s", wanted, capabilities.KubeVersion.String())}
	}
	values, err := renderValues(chart, config, input, capabilities)
	if err != nil {
		return render.Result{}, err
	}
	finder, err := finderOf(input, guard)
	if err != nil {
		return render.Result{}, err
	}
	sorted, manifests, err := renderManifests(chart, values, finder)
	if err != nil {
		return render.Result{}, err
	}
	objects, marked, text, err := readManifests(&reader, manifests)
	if err != nil {
		return render.Result{}, err
	}
	objects = append(crds, objects...)
	hooks, err := readHooks(&reader, sorted, marked, input.Release)
	if err != nil {
		return render.Result{}, err
	}
	if len(objects)+len(hooks) == 0 {
		return render.Result{}, &render.NoManifestsError{Addon: input.Addon, Templates: max(1, len(chart.Templates))}
	}
	config, err = helmValues(input.Values)
	return render.Result{Objects: objects, Chart: &render.Chart{
		Name: chart.Name(), Version: chart.Metadata.Version, AppVersion: chart.AppVersion(), Manifest: text, Config: config, Hooks: hooks,
	}}, err
}

// readCRDs reads the crds/ folders of a chart and its selected dependencies. These files are no templates.
func readCRDs(reader *manifest.Reader, chart *helmchart.Chart) ([]*unstructured.Unstructured, error) {
	for _, crd := range chart.CRDObjects() {
		text := string(crd.File.Data)
		at := func(offset int) (string, int) {
			return crd.Filename, 1 + strings.Count(text[:min(offset, len(text))], "\n")
		}
		if _, err := reader.Read(manifest.Source{Text: text, At: at}); err != nil {
			return nil, err
		}
	}
	return slices.Clone(reader.Objects()), nil
}

// renderManifests returns hooks and other documents, in Helm's order of kinds, without notes.
func renderManifests(chart *helmchart.Chart, values chartutil.Values, finder *finder) ([]*release.Hook, []releaseutil.Manifest, error) {
	files, err := renderFiles(chart, values, finder)
	if err != nil {
		return nil, nil, engineError(chart, err)
	}
	size := 0
	for name, text := range files {
		if path.Base(name) == notesFile {
			delete(files, name)
		}
		if size += len(text); size > manifest.MaxBytes {
			return nil, nil, &render.LimitError{What: "bytes of rendered text", Max: manifest.MaxBytes}
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, engineError(chart, err)
	}
	return hooks, manifests, nil
}

func renderFiles(chart *helmchart.Chart, values chartutil.Values, finder *finder) (map[string]string, error) {
	if finder == nil {
		return engine.Engine{}.Render(chart, values)
	}
	if finder.guard != nil {
		finder.guard.into(chart)
	}
	return engine.RenderWithClientProvider(chart, values, finder)
}

// readManifests reads the objects and returns the manifest's text as Helm stores it. Documents with the mark of Open
// Cluster Management are hooks, and so are in neither.
func readManifests(reader *manifest.Reader, manifests []releaseutil.Manifest) (
	objects []*unstructured.Unstructured, hooks []render.Hook, text string, err error,
) {
	var written strings.Builder
	for _, document := range manifests {
		at := func(int) (string, int) { return document.Name, 0 }
		found, err := reader.Read(manifest.Source{Text: document.Content, At: at})
		if err != nil {
			return nil, nil, "", err
		}
		if !slices.ContainsFunc(found, render.MarkedPreDelete) {
			fmt.Fprintf(&written, "---\n# Source: %s\n%s\n", document.Name, document.Content)
			objects = append(objects, found...)
			continue
		}
		hook := render.Hook{
			Path: document.Name, Events: []string{"pre-delete"}, DeletePolicies: []string{"before-hook-creation", "hook-succeeded"},
		}
		if hook.Object, err = onlyObject(document.Name, found); err != nil {
			return nil, nil, "", err
		}
		hooks = append(hooks, hook)
	}
	return objects, hooks, written.String(), nil
}

// located reads file and line from the errors of Helm's engine: "parse error at (FILE:LINE)",
// "execution error at (FILE:LINE:COLUMN)", "template: FILE:LINE:COLUMN:" and "YAML parse error on
// FILE".
var located = regexp.MustCompile(
	`(?s)^(?:(?:parse|execution) error at \(|template: |YAML parse error on )([^:()]+?)(?::(\d+)(?::\d+)?)?\)?: (.*)$`)

func engineError(chart *helmchart.Chart, err error) error {
	text := err.Error()
	text = text[:min(len(text), redact.MaxLook)]
	match := located.FindStringSubmatch(text)
	if match == nil {
		return &render.ChartError{Problem: "can't be rendered: " + text}
	}
	line, _ := strconv.Atoi(match[2])
	stage, problem := render.StageOf(match[3]), match[3]
	switch {
	case strings.HasPrefix(text, "parse error"):
		stage = render.StageContent
	case strings.HasPrefix(text, "YAML parse error"):
		stage = render.StageOutput
	case stage == render.StageExecution:
		problem = withValues(chart, text, problem)
	}
	return &render.TemplateError{File: match[1], Line: line, Problem: problem, Stage: stage}
}

func withoutValues(redactor redact.Redactor, err error) error {
	var inTemplate *render.TemplateError
	var inChart *render.ChartError
	var bySchema *schemaError
	switch {
	case errors.As(err, &bySchema):
		return &render.ChartError{Chart: bySchema.Chart, Problem: redact.Redactor{}.Text(bySchema.Problem)}
	case errors.As(err, &inTemplate):
		return &render.TemplateError{
			File: redactor.Text(inTemplate.File), Line: inTemplate.Line, Problem: redactor.Text(inTemplate.Problem), Stage: inTemplate.Stage,
		}
	case errors.As(err, &inChart):
		return &render.ChartError{Chart: redactor.Text(inChart.Chart), Problem: redactor.Text(inChart.Problem), Stage: inChart.Stage}
	}
	return err
}

// gate drops the standard logger's lines while Helm works: its warnings may print values.
type gate struct {
	mutex   sync.Mutex
	next    io.Writer
	working int
}

var standardLog gate

func (g *gate) Write(line []byte) (int, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.working > 0 {
		return len(line), nil
	}
	return g.next.Write(line)
}

// enter puts the gate in front of the logger's present writer.
func (g *gate) enter() {
	writer := log.Writer()
	g.mutex.Lock()
	g.working++
	if writer != io.Writer(g) {
		g.next = writer
	}
	g.mutex.Unlock()
	log.SetOutput(g)
}

func (g *gate) leave() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.working--
}

func quietly(work func()) {
	standardLog.enter()
	defer standardLog.leave()
	work()
}

// readHooks reads the objects of hooks, which count in the limits of all objects, and adds the marked ones.
func readHooks(reader *manifest.Reader, sorted []*release.Hook, marked []render.Hook, options render.Release) ([]render.Hook, error) {
	if options.DisableHooks {
		return nil, nil
	}
	var hooks []render.Hook
	for _, one := range sorted {
		at := func(int) (string, int) { return one.Path, 0 }
		objects, err := reader.Read(manifest.Source{Text: one.Manifest, At: at})
		if err != nil {
			return nil, err
		}
		object, err := onlyObject(one.Path, objects)
		if err != nil {
			return nil, err
		}
		hook := render.Hook{
			Path: one.Path, Weight: one.Weight, Object: object, Events: distinct(one.Events, render.HookEvents),
			DeletePolicies: distinct(one.DeletePolicies, render.HookDeletePolicies),
			LogPolicies:    distinct(one.OutputLogPolicies, render.HookLogPolicies),
		}
		if err := hook.Check(); err != nil {
			return nil, err
		}
		hooks = append(hooks, hook)
	}
	return append(hooks, marked...), nil
}

// onlyObject is the object of a hook's document.
func onlyObject(file string, objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(objects) != 1 {
		return nil, &render.TemplateError{File: file, Problem: "a hook has to be exactly one object, and not a list"}
	}
	return objects[0], nil
}

// distinct returns the known words, each once, in their order. Annotations may have others.
func distinct[W ~string](words []W, known []string) []string {
	var found []string
	for _, word := range known {
		if slices.ContainsFunc(words, func(said W) bool { return strings.EqualFold(string(said), word) }) {
			found = append(found, word)
		}
	}
	return found
}
