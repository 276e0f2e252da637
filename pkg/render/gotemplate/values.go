package gotemplate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values"
)

// valuesLimits of one valuesTemplate, which gives one document.
var valuesLimits = limits{time: 5 * time.Second, bytes: values.MaxBytes}

var _ render.ValuesRenderer = Renderer{}

// RenderValues gives the values that a catalogue's valuesTemplate renders to: the same data and functions as manifests have,
// and one YAML document within the limits of package values.
func (Renderer) RenderValues(ctx context.Context, input render.ValuesInput) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, valuesLimits.time)
	defer cancel()
	data := rootData(render.Input{Data: input.Data})
	rendering := rendering{ctx: ctx, limits: valuesLimits, redactor: redact.New(nil, input.Data), data: data}
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
			": give what the template prints there a default"}
	}
	return decoded, nil
}

// problem is an error about a line of the output, told with the line of the template that wrote it.
func (o *output) problem(line int, problem string) error {
	offset := 0
	for text := range strings.Lines(o.text.String()) {
		if line--; line <= 0 {
			break
		}
		offset += len(text)
	}
	name, at := o.at(offset)
	return &render.TemplateError{File: name, Line: at, Problem: problem}
}
