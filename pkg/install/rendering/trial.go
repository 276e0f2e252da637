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
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Reason is the reason of condition Rendered for an error of a rendering.
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

// Trial renders versions before they are installed, for checks and for authors: it caches nothing, and prepares nothing
// for a cluster.
type Trial struct {
	// Methods by name.
	Methods map[string]render.Renderer
	Values  render.ValuesRenderer
}

// UntriedError reports that a version can't be checked without an installation: it needs values of a user, or facts
// of a cluster.
type UntriedError struct{ Err error }

func (e *UntriedError) Error() string {
	return "it can't be rendered without an installation: " + e.Err.Error()
}

// Unwrap is the error about the missing value or fact.
func (e *UntriedError) Unwrap() error { return e.Err }

// sampleName is the name of the installation and of its namespace.
const sampleName = "sample"

// Trials is what a Trial renders, and for what.
type Trials struct {
	Addon   string
	Version *v1.AddonVersion
	Content fs.FS
	// Installation has its name, its target namespace and its own values.
	Installation *v1.AddonInstallation
	// Data is the cluster's, and CAPI its Cluster as .CAPI, if it has one. Kubernetes is its release.
	Data       templatedata.Data
	CAPI       map[string]any
	Kubernetes string
}

// Objects renders a version, and also returns its merged values. Errors are those of a rendering, none has a value;
// an *UntriedError if the values are not complete, or the version needs secrets.
func (t *Trial) Objects(ctx context.Context, q Trials) (found render.Result, merged map[string]any, err error) {
	template := q.Version.Template
	if template.ClusterSecrets {
		return found, nil, &UntriedError{errors.New("it needs the secrets of a cluster")}
	}
	q.Data.BuiltIn = BuiltIn(q.Data.Cluster.Namespace, q.Installation, q.Version)
	choice := resolution.Choice{Version: q.Version}
	resolved, err := choice.Values(ctx, q.Installation, trialLayers{trial: t, of: q})
	if values.IsInvalid(err) {
		return found, nil, &UntriedError{err}
	}
	renderer := t.Methods[string(template.Method)]
	if renderer == nil {
		return found, nil, fmt.Errorf("method %q is not supported", template.Method)
	}
	if err != nil {
		return found, resolved.Merged, err
	}
	input := render.Input{
		Addon: q.Addon, Tenant: q.Addon, Content: q.Content, Values: resolved.Merged, Data: q.Data,
		Release: render.Release{
			Name: choice.ReleaseName(q.Installation), Namespace: q.Installation.Spec.TargetNamespace, Revision: 1, IsInstall: true,
		},
		Capabilities: render.Capabilities{KubeVersion: "v" + q.Kubernetes, APIVersions: sampleVersions()},
	}
	if helm := template.Helm; helm != nil {
		input.Release.DisableHooks = helm.DisableHooks
	}
	found, err = renderer.Render(ctx, input)
	return found, resolved.Merged, err
}

// Render renders a version for the sample. The error is an *UntriedError, an *Error if every installation without values
// of a user fails, or about the machine; none has a value.
func (t *Trial) Render(ctx context.Context, addon string, version *v1.AddonVersion, content fs.FS) error {
	kubernetes := catalogue.SampleKubernetes(version)
	if kubernetes == "" {
		return &UntriedError{errors.New("its constraints.k8sVersion fits no known release of Kubernetes from 1.34.0 on")}
	}
	data, err := templatedata.Sample(kubernetes)
	if err != nil {
		return err
	}
	sample := &v1.AddonInstallation{}
	sample.Name, sample.Spec.TargetNamespace = sampleName, sampleName
	_, merged, err := t.Objects(ctx, Trials{
		Addon: addon, Version: version, Content: content, Installation: sample, Data: data, Kubernetes: kubernetes,
	})
	if _, untried := errors.AsType[*UntriedError](err); untried {
		return err
	}
	return evaluated(err, merged, version, content)
}

// trialLayers are the layers of values without those of users.
type trialLayers struct {
	resolution.Layers
	trial *Trial
	of    Trials
}

func (l trialLayers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.trial.Values.RenderValues(ctx, render.ValuesInput{
		Addon: l.of.Addon, Tenant: l.of.Addon, Template: template, Data: l.of.Data, CAPI: l.of.CAPI,
	})
}

// FromObject has no seed to read from.
func (trialLayers) FromObject(_ context.Context, ref *v1.ObjectReference) (resolution.Read, error) {
	if ref.Optional {
		return resolution.Read{}, nil
	}
	return resolution.Read{}, &UntriedError{fmt.Errorf("it needs values of %s %q in the namespace of a cluster", ref.Kind, ref.Name)}
}

func (trialLayers) FromPlatform() map[string]any { return nil }

// sampleVersions are the kinds that each cluster serves: the stable ones of Kubernetes itself.
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

// evaluated reports whether an error proves that a version is wrong.
func evaluated(err error, merged map[string]any, version *v1.AddonVersion, content fs.FS) error {
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
		isExhausted && exhausted.Limit == render.LimitMemory, // installations have more memory
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

// lacks reports whether a text names a fact that the sample does not have, or a value that is absent or empty. Maps
// and lists count as empty: fields below them may be absent.
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

// valuesFile is the file with the defaults of a chart.
const valuesFile = "values.yaml"

// overDefaults are values over those of the chart to which a file belongs; nil if that is unknown.
func overDefaults(merged map[string]any, path string, content fs.FS) map[string]any {
	if strings.HasPrefix(path, "charts/") { // it sees some of them, below other paths
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

// mayDepend reports whether data may cause a template's problem: at execution, any data that it sees; in its output,
// data that the sample lacks. If that is unknown, it reports true.
func mayDepend(of *render.TemplateError, merged map[string]any, version *v1.AddonVersion, content fs.FS) bool {
	path := of.File
	if catalogue.TraitsOf(version.Template.Method).IsChart { // it begins with the name of the chart
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
