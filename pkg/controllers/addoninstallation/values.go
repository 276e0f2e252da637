package addoninstallation

import (
	"context"
	"errors"
	"strings"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

// resolveValues puts the layers of values together. Template data comes first: a catalogue may make values of it.
func (r *Reconciler) resolveValues(ctx context.Context, f *facts) loop.Outcome {
	data, err := r.templateData(ctx, f)
	if err != nil {
		return dataOutcome(err)
	}
	f.data = data
	f.values, err = f.choice.Values(ctx, f.installation, layers{r, f})
	if err != nil {
		return valuesOutcome(err)
	}
	return nil
}

// layers reads the layers of values for a pass.
type layers struct {
	r *Reconciler
	f *facts
}

// FromTemplate renders the catalogue's valuesTemplate. Renderings are kept, so that one that changes nothing costs nothing.
func (l layers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(l.f), Tenant: tenantOf(l.f), Template: template, Data: l.f.data,
	}, l.r.waker(l.f.installation))
}

// FromSource reads a marked object.
func (l layers) FromSource(ctx context.Context, source kubermaticv1.ValuesSource) (map[string]any, error) {
	return l.r.references().Values(ctx, l.f.installation.Namespace, source)
}

// valuesOutcome: what is wrong stays wrong until somebody edits what is watched; a valuesTemplate that took a renderer with
// it is tried again in its time. Anything else may pass.
func valuesOutcome(err error) loop.Outcome {
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
	var missing *resolution.MissingValuesError
	var putOff *render.PutOffError
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
		}
	case errors.As(err, &missing):
		stalled.Reason = kubermaticv1.ReasonValuesMissing
	case errors.As(err, &putOff):
		stalled.Recheck = max(time.Until(putOff.Until), time.Second)
	case !render.Lasting(err) && !isInvalid(err):
		return failed(err)
	}
	return stalled
}

// isInvalid says whether an error is about values or a form, and not about a call that failed.
func isInvalid(err error) bool {
	var (
		decode   *values.DecodeError
		field    *values.FieldError
		reserved *values.ReservedKeyError
		tooLarge *values.LimitError
		marks    *values.MarksError
	)
	return errors.As(err, &marks) || errors.As(err, &decode) || errors.As(err, &field) ||
		errors.As(err, &reserved) || errors.As(err, &tooLarge)
}

// unknownKeys tells what a user may have misspelt; empty for most.
func unknownKeys(f *facts) string {
	if len(f.values.Unknown) == 0 {
		return ""
	}
	return values.PlaceOf(f.installation) + ": " + strings.Join(f.values.Unknown, "; ")
}
