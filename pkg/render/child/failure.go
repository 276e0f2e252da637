package child

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
)

// failure is the reason why there is no result: an error of package render, or Other.
type failure struct {
	Template            *render.TemplateError            `json:",omitempty"`
	NoManifests         *render.NoManifestsError         `json:",omitempty"`
	Limit               *render.LimitError               `json:",omitempty"`
	Chart               *render.ChartError               `json:",omitempty"`
	DependenciesMissing *render.DependenciesMissingError `json:",omitempty"`
	Other               string                           `json:",omitempty"`
}

func failureOf(err error) failure {
	var found failure
	switch {
	case errors.As(err, &found.Template), errors.As(err, &found.NoManifests), errors.As(err, &found.Limit),
		errors.As(err, &found.Chart), errors.As(err, &found.DependenciesMissing):
	default:
		found.Other = err.Error()
		found.Other = found.Other[:min(len(found.Other), redact.MaxText)]
	}
	return found
}

// RenderingError is a failure without a type of its own.
type RenderingError struct{ Problem string }

func (e *RenderingError) Error() string { return e.Problem }

func readFailure(payload []byte) (error, error) {
	var found failure
	if _, depth := weigh(payload); depth > maxDepth {
		return nil, &render.ProtocolError{Problem: "a failure that is too deep"}
	}
	if err := json.Unmarshal(payload, &found); err != nil {
		return nil, &render.ProtocolError{Problem: "a failure that can't be decoded"}
	}
	switch {
	case found.Template != nil:
		return found.Template, nil
	case found.NoManifests != nil:
		return found.NoManifests, nil
	case found.Limit != nil:
		return found.Limit, nil
	case found.Chart != nil:
		return found.Chart, nil
	case found.DependenciesMissing != nil:
		return found.DependenciesMissing, nil
	}
	return &RenderingError{Problem: found.Other}, nil
}

// withoutValues removes values from a child's texts, in case the renderer did not write them.
func withoutValues(redactor redact.Redactor, err error) error {
	texts := func(list []string) []string {
		cut := make([]string, 0, min(len(list), maxListed))
		for _, text := range list[:min(len(list), maxListed)] {
			cut = append(cut, redactor.Text(text))
		}
		return cut
	}
	switch found := err.(type) { //nolint:errorlint // the errors were made by readFailure, and wrap nothing
	case *render.TemplateError:
		return &render.TemplateError{File: redactor.Text(found.File), Line: found.Line, Problem: redactor.Text(found.Problem), Stage: found.Stage}
	case *render.NoManifestsError:
		return &render.NoManifestsError{Addon: redactor.Text(found.Addon), Templates: found.Templates}
	case *render.LimitError:
		return &render.LimitError{What: redactor.Text(found.What), Max: found.Max}
	case *render.ChartError:
		return &render.ChartError{Chart: redactor.Text(found.Chart), Problem: redactor.Text(found.Problem), Stage: found.Stage}
	case *render.DependenciesMissingError:
		return &render.DependenciesMissingError{Chart: redactor.Text(found.Chart), Missing: texts(found.Missing)}
	case *RenderingError:
		return &RenderingError{Problem: redactor.Text(found.Problem)}
	}
	return err
}

// maxListed is the maximum number of names of a list in a message.
const maxListed = 20
