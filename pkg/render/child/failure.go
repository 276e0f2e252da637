package child

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
)

// failure is why there is no result: an error of package render, or Other.
type failure struct {
	Template            *render.TemplateError            `json:",omitempty"`
	NoManifests         *render.NoManifestsError         `json:",omitempty"`
	Limit               *render.LimitError               `json:",omitempty"`
	Chart               *render.ChartError               `json:",omitempty"`
	DependenciesMissing *render.DependenciesMissingError `json:",omitempty"`
	Other               string                           `json:",omitempty"`
}

func failureOf(err error) failure {
	var told failure
	switch {
	case errors.As(err, &told.Template), errors.As(err, &told.NoManifests), errors.As(err, &told.Limit),
		errors.As(err, &told.Chart), errors.As(err, &told.DependenciesMissing):
	default:
		told.Other = err.Error()
		told.Other = told.Other[:min(len(told.Other), redact.MaxText)]
	}
	return told
}

// RenderingError is a failure without a type of its own.
type RenderingError struct{ Problem string }

func (e *RenderingError) Error() string { return e.Problem }

func readFailure(payload []byte) (error, error) {
	var told failure
	if _, depth := weigh(payload); depth > maxDepth {
		return nil, &render.ProtocolError{Problem: "a failure that is too deep"}
	}
	if err := json.Unmarshal(payload, &told); err != nil {
		return nil, &render.ProtocolError{Problem: "a failure that can't be decoded"}
	}
	switch {
	case told.Template != nil:
		return told.Template, nil
	case told.NoManifests != nil:
		return told.NoManifests, nil
	case told.Limit != nil:
		return told.Limit, nil
	case told.Chart != nil:
		return told.Chart, nil
	case told.DependenciesMissing != nil:
		return told.DependenciesMissing, nil
	}
	return &RenderingError{Problem: told.Other}, nil
}

// withoutValues takes values out of a child's texts, in case not the renderer wrote them.
func withoutValues(redactor redact.Redactor, err error) error {
	texts := func(list []string) []string {
		cut := make([]string, 0, min(len(list), maxListed))
		for _, text := range list[:min(len(list), maxListed)] {
			cut = append(cut, redactor.Text(text))
		}
		return cut
	}
	switch told := err.(type) { //nolint:errorlint // the errors were made by readFailure, and wrap nothing
	case *render.TemplateError:
		return &render.TemplateError{File: redactor.Text(told.File), Line: told.Line, Problem: redactor.Text(told.Problem)}
	case *render.NoManifestsError:
		return &render.NoManifestsError{Addon: redactor.Text(told.Addon)}
	case *render.LimitError:
		return &render.LimitError{What: redactor.Text(told.What), Max: told.Max}
	case *render.ChartError:
		return &render.ChartError{Chart: redactor.Text(told.Chart), Problem: redactor.Text(told.Problem)}
	case *render.DependenciesMissingError:
		return &render.DependenciesMissingError{Chart: redactor.Text(told.Chart), Missing: texts(told.Missing)}
	case *RenderingError:
		return &RenderingError{Problem: redactor.Text(told.Problem)}
	}
	return err
}

// maxListed names of a list that a message keeps.
const maxListed = 20
