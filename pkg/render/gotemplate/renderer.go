package gotemplate

import (
	"context"
	"fmt"
	"maps"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/values"
)

// limits of one rendering, of which all files have a part.
type limits struct {
	time  time.Duration
	bytes int
}

var manifestLimits = limits{time: 30 * time.Second, bytes: manifest.MaxBytes}

// Renderer implements render.Renderer for method go-template.
type Renderer struct{}

// New makes a renderer.
func New() Renderer { return Renderer{} }

var _ render.Renderer = Renderer{}

// Render gives the objects of the folder. Errors that only an edit mends are *render.TemplateError, *render.LimitError and
// *render.NoManifestsError.
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
		return render.Result{}, &render.NoManifestsError{Addon: input.Addon}
	}
	return render.Result{Objects: objects}, nil
}

// rootData is the template data with the values over the variables that are set by flag, key by key as in KKP. Nothing
// that a template may change is shared.
func rootData(input render.Input) *templatedata.Data {
	data := input.Data
	data.Variables = values.WithoutNulls(input.Data.Variables)
	maps.Copy(data.Variables, values.WithoutNulls(input.Values))
	data.Cluster.Labels = maps.Clone(data.Cluster.Labels)
	data.Cluster.Annotations = maps.Clone(data.Cluster.Annotations)
	data.Cluster.Features = data.Cluster.Features.Clone()
	return &data
}

// rendering is the work on one input.
type rendering struct {
	ctx      context.Context
	limits   limits
	redactor redact.Redactor
	data     *templatedata.Data
	set      *template.Template
	places   places
	// otherMoment has the clock say another time.
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
