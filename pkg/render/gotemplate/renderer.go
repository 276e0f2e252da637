package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// limits of one rendering, for all files together.
type limits struct {
	time  time.Duration
	bytes int
}

var manifestLimits = limits{time: 30 * time.Second, bytes: manifest.MaxBytes}

// Renderer implements render.Renderer for method go-template.
type Renderer struct{}

// New creates a renderer.
func New() Renderer { return Renderer{} }

// Render returns the objects of the folder. Errors that only an edit solves are *render.TemplateError,
// *render.LimitError and *render.NoManifestsError.
func (Renderer) Render(ctx context.Context, input render.Input) (render.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, manifestLimits.time)
	defer cancel()
	files, err := readFiles(input.Content)
	if err != nil {
		return render.Result{}, fmt.Errorf("add-on %q: %w", input.Addon, err)
	}
	rendering := rendering{
		ctx: ctx, limits: manifestLimits, redactor: redact.New(input.Values, input.Data), data: rootData(input),
		otherMoment: input.OtherMoment,
	}
	if err := rendering.parse(files); err != nil {
		return render.Result{}, err
	}
	objects, err := rendering.objects(files)
	if err != nil {
		return render.Result{}, err
	}
	if len(objects) == 0 {
		return render.Result{}, &render.NoManifestsError{Addon: input.Addon, Templates: len(files)}
	}
	return render.Result{Objects: objects}, nil
}

// rootData is the template data, with the values merged over the variables that are set by flag, key by key as in
// KKP. It shares no data that a template may change.
func rootData(input render.Input) *templatedata.Data {
	data := input.Data
	data.Variables = values.WithoutNulls(input.Data.Variables)
	maps.Copy(data.Variables, values.WithoutNulls(input.Values))
	data.Platform = values.WithoutNulls(input.Data.Platform)
	data.Cluster.Labels = maps.Clone(data.Cluster.Labels)
	data.Cluster.Annotations = maps.Clone(data.Cluster.Annotations)
	data.Cluster.Features = data.Cluster.Features.Clone()
	return &data
}

// rendering renders one input.
type rendering struct {
	ctx      context.Context
	limits   limits
	redactor redact.Redactor
	data     *templatedata.Data
	// root is the data that templates see; nil: data.
	root        any
	set         *template.Template
	places      places
	otherMoment bool
}

func (r *rendering) objects(files []file) ([]*unstructured.Unstructured, error) {
	var reader manifest.Reader
	budget := r.limits.bytes
	for _, file := range files {
		output, err := r.execute(file, budget)
		if err != nil {
			return nil, err
		}
		budget -= output.text.Len()
		source := manifest.Source{Text: output.text.String(), At: output.at}
		added, err := reader.Read(source)
		if err != nil {
			return nil, err
		}
		if err := refuseNoValue(file, added); err != nil {
			return nil, err
		}
	}
	return reader.Objects(), nil
}

var valuesLimits = limits{time: 5 * time.Second, bytes: values.MaxBytes}

// valuesData is the data that a valuesTemplate sees.
type valuesData struct {
	*templatedata.Data
	// CAPI has objects of Cluster API.
	CAPI map[string]any `json:",omitempty"`
}

// RenderValues renders a catalogue's valuesTemplate to values: one YAML document within the limits of package values,
// with data and functions as in manifests, and .CAPI.
func (Renderer) RenderValues(ctx context.Context, input render.ValuesInput) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, valuesLimits.time)
	defer cancel()
	data := rootData(render.Input{Data: input.Data})
	rendering := rendering{ctx: ctx, limits: valuesLimits, redactor: redact.New(nil, input.Data), data: data}
	rendering.root = valuesData{Data: data, CAPI: input.CAPI}
	template := file{path: render.ValuesTemplateFile, text: input.Template}
	if err := rendering.parse([]file{template}); err != nil {
		return nil, err
	}
	output, err := rendering.execute(template, valuesLimits.bytes)
	if err != nil {
		return nil, err
	}
	decoded, err := values.Decode([]byte(output.text.String()))
	if problem, ok := errors.AsType[*values.DecodeError](err); ok {
		return nil, output.problem(problem.Line, "the rendered values: "+problem.Problem)
	}
	if err != nil {
		return nil, err
	}
	if field, found := findNoValue(decoded, ""); found {
		return nil, &render.TemplateError{File: template.path, Problem: "has no value for " + strings.TrimPrefix(field, ".") +
			": give the value that the template prints there a default"}
	}
	return decoded, nil
}

// problem is an error about a line of the output, with the line of the template that wrote it.
func (o *output) problem(line int, problem string) error {
	offset := 0
	for text := range strings.Lines(o.text.String()) {
		if line--; line <= 0 {
			break
		}
		offset += len(text)
	}
	name, at := o.at(offset)
	return &render.TemplateError{File: name, Line: at, Problem: problem, Stage: render.StageOutput}
}

// noValue is the output of text/template for a missing key.
const noValue = "<no value>"

func refuseNoValue(file file, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if field, found := findNoValue(object.Object, ""); found {
			return &render.TemplateError{File: file.path, Problem: fmt.Sprintf(
				"%s %q has no value for %s: set the key that the template prints there, or give it a default",
				object.GetKind(), object.GetName(), strings.TrimPrefix(field, "."))}
		}
	}
	return nil
}

// findNoValue returns the first field, by name, that looks like a missing key.
func findNoValue(value any, at string) (string, bool) {
	switch value := value.(type) {
	case string:
		return at, strings.Contains(value, noValue)
	case []any:
		for i, child := range value {
			if field, found := findNoValue(child, fmt.Sprintf("%s[%d]", at, i)); found {
				return field, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.Contains(key, noValue) {
				return at, true
			}
			if field, found := findNoValue(value[key], at+"."+key); found {
				return field, true
			}
		}
	}
	return "", false
}
