package rendering

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Reason is that of condition Rendered for an error of a rendering.
func Reason(err error) string {
	switch {
	case is[*render.NoManifestsError](err):
		return v1.ReasonNoManifests
	case is[*render.DependenciesMissingError](err):
		return v1.ReasonDependenciesMissing
	case is[*render.LimitError](err), is[*render.ExhaustedError](err), is[*render.DiedError](err),
		is[*apply.LimitError](err), is[*survey.FoundError](err):
		return v1.ReasonLimitExceeded
	}
	return v1.ReasonRenderFailed
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// Trial renders versions before anybody installs them: with their own values and their forms' defaults,
// for a cluster that does not exist (templatedata.Sample). Nothing is kept, or made ready for a cluster.
type Trial struct {
	// Methods by name.
	Methods map[string]render.Renderer
	Values  render.ValuesRenderer
}

// UntriedError says that a version can't be judged without an installation: it needs values of a user, or
// facts of a cluster.
type UntriedError struct{ Err error }

func (e *UntriedError) Error() string {
	return "it can't be rendered without an installation: " + e.Err.Error()
}

// Unwrap gives what is lacking.
func (e *UntriedError) Unwrap() error { return e.Err }

// sampleName is the name of the installation and of its namespace.
const sampleName = "sample"

// Render renders a version. The error is an *UntriedError, an *Error where every installation without
// values of a user fails, or about the machine; none holds a value.
func (t *Trial) Render(ctx context.Context, addon string, version *v1.AddonVersion, content fs.FS) error {
	if version.Template.ClusterSecrets {
		return &UntriedError{errors.New("it asks for the secrets of a cluster")}
	}
	kubernetes := catalogue.SampleKubernetes(version)
	if kubernetes == "" {
		return &UntriedError{errors.New("no release of Kubernetes from 1.34.0 on was found that its constraints.k8sVersion admits")}
	}
	data, err := templatedata.Sample(kubernetes)
	if err != nil {
		return err
	}
	choice, sample := resolution.Choice{Version: version}, &v1.AddonInstallation{}
	sample.Name, sample.Spec.TargetNamespace = sampleName, sampleName
	resolved, err := choice.Values(ctx, sample, trialLayers{trial: t, addon: addon, data: data})
	if values.IsInvalid(err) {
		return &UntriedError{err}
	}
	method := version.Template.Method
	renderer := t.Methods[string(method)]
	if renderer == nil {
		return fmt.Errorf("method %q is not served", method)
	}
	if err == nil {
		input := render.Input{
			Addon: addon, Tenant: addon, Content: content, Values: resolved.Merged, Data: data,
			Release:      render.Release{Name: choice.ReleaseName(sample), Namespace: sampleName, Revision: 1, IsInstall: true},
			Capabilities: render.Capabilities{KubeVersion: "v" + kubernetes, APIVersions: sampleVersions()},
		}
		if helm := version.Template.Helm; helm != nil {
			input.Release.DisableHooks = helm.DisableHooks
		}
		_, err = renderer.Render(ctx, input)
	}
	return judged(err, resolved.Merged, version, content)
}

// trialLayers are the layers of values without users: nothing of theirs is asked for.
type trialLayers struct {
	resolution.Layers
	trial *Trial
	addon string
	data  templatedata.Data
}

func (l trialLayers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.trial.Values.RenderValues(ctx, render.ValuesInput{Addon: l.addon, Tenant: l.addon, Template: template, Data: l.data})
}

func (trialLayers) FromPlatform() map[string]any { return nil }

// sampleVersions are the kinds that each cluster serves: those of Kubernetes itself that are stable.
func sampleVersions() (served []string) {
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if strings.Contains(version.Version, "alpha") || strings.Contains(version.Version, "beta") {
			continue
		}
		served = append(served, version.String())
		for kind := range scheme.Scheme.KnownTypes(version) {
			served = append(served, version.String()+"/"+kind)
		}
	}
	return served
}

// judged says whether an error shows that a version is wrong.
func judged(err error, merged map[string]any, version *v1.AddonVersion, content fs.FS) error {
	template, isTemplate := errors.AsType[*render.TemplateError](err)
	chart, isChart := errors.AsType[*render.ChartError](err)
	none, isNone := errors.AsType[*render.NoManifestsError](err)
	exhausted, isExhausted := errors.AsType[*render.ExhaustedError](err)
	died, isDead := errors.AsType[*render.DiedError](err)
	switch {
	case err == nil, isTemplate && template.Stage == render.StageTime:
		return err
	case isTemplate && template.Stage != render.StageContent && mayDepend(template, merged, version, content),
		isChart && chart.Stage != render.StageContent,
		isNone && none.Templates > 0,
		isExhausted && exhausted.Limit == render.LimitMemory, // installations have more
		isDead && died.Of == render.DiedOfMemory:
		return &UntriedError{err}
	case render.Lasting(err), isExhausted && exhausted.Limit == render.LimitCPU, isDead && died.Of == render.DiedOfStack:
		return &Error{CauseVersion, err}
	}
	return err
}

var (
	// seesData finds templates that may see any data, callsOthers those that call others, or that others call.
	seesData    = regexp.MustCompile(`\{\{[^}]*([.$]|\b(include|template|block|tpl|lookup)\b)`)
	callsOthers = regexp.MustCompile(`\{\{[^}]*\b(include|template|block|tpl|define)\b`)
	// namesValue finds values that users may set, with their paths.
	namesValue = regexp.MustCompile(`\b(?:Values|Variables|Subcharts)\b((?:\.\w+)*)`)
)

// lacks says whether a text names a fact that the sample has none of, or a value that is absent or empty.
// Maps and lists count as empty: what is below them may be absent.
func lacks(text string, set map[string]any) bool {
	for _, match := range namesValue.FindAllStringSubmatch(text, -1) {
		path := strings.Split(strings.TrimPrefix(match[1], "."), ".")
		value, _, err := unstructured.NestedFieldNoCopy(set, path...)
		switch value.(type) {
		case nil, map[string]any, []any:
			return true
		}
		if err != nil || reflect.ValueOf(value).IsZero() {
			return true
		}
	}
	return templatedata.BeyondSample.MatchString(text)
}

// valuesFile has the defaults of a chart.
const valuesFile = "values.yaml"

// overDefaults are values over those of the chart that has a file; nil where that can't be told.
func overDefaults(merged map[string]any, path string, content fs.FS) map[string]any {
	if strings.HasPrefix(path, "charts/") { // it sees a part of them, below other paths
		return nil
	}
	text, _, err := render.ReadAtMost(content, valuesFile, values.MaxBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return merged
	}
	defaults, invalid := values.Decode([]byte(text))
	if err != nil || invalid != nil {
		return nil
	}
	set, _, err := values.Merge([]values.Layer{{Values: defaults}, {Values: merged}})
	if err != nil {
		return nil
	}
	return set
}

// mayDepend says whether a template's problem may come of data: at execution of any that it sees, in its
// output of those that it lacks. In doubt it does.
func mayDepend(of *render.TemplateError, merged map[string]any, version *v1.AddonVersion, content fs.FS) bool {
	path := of.File
	if version.Template.Method == v1.MethodHelm { // it begins with the name of the chart
		_, path, _ = strings.Cut(path, "/")
		merged = overDefaults(merged, path, content)
	}
	named := seesData.MatchString
	if of.Stage == render.StageOutput {
		named = func(text string) bool { return lacks(text, merged) }
	}
	if of.File == render.ValuesTemplateFile {
		return named(version.ValuesTemplate)
	}
	text, _, err := render.ReadAtMost(content, path, fileLimit)
	if err != nil || named(text) {
		return true
	}
	if !callsOthers.MatchString(text) {
		return false
	}
	elsewhere, err := anyFile(content, func(path string) bool { return !isPacked(path) }, named)
	if !elsewhere && err == nil {
		elsewhere, err = anyFile(content, isPacked, func(string) bool { return true })
	}
	return elsewhere || err != nil
}
