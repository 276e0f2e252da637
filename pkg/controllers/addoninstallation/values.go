package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Origins of the layers of values, lowest first. A value from a form is in spec.values.
const (
	originCatalogue = "catalogue"
	originTemplate  = "valuesTemplate"
	originForm      = "form defaults"
	originUser      = "installation"
)

// missingValuesError: a referenced object that has to be there is not.
type missingValuesError struct{ what string }

func (e *missingValuesError) Error() string { return e.what }

// resolveValues puts the layers together, lowest first, and checks them against the form. Template data comes first: a
// catalogue may make values of it.
func (r *Reconciler) resolveValues(ctx context.Context, f *facts) loop.Outcome {
	data, err := r.templateData(ctx, f)
	if err != nil {
		return dataOutcome(err)
	}
	f.data = data
	layers, err := r.layers(ctx, f)
	if err == nil {
		f.catalogueValues = layers[0].Values
		f.values, f.origins, err = mergeAndCheck(f.choice.Version, layers)
		f.unknownKeys = unknownKeys(f, layers)
	}
	if err == nil {
		f.given, err = given(layers)
	}
	if err != nil {
		return valuesOutcome(err)
	}
	return nil
}

// valuesOutcome: what is wrong stays wrong until somebody edits what is watched; a valuesTemplate that took a renderer with
// it is tried again in its time. Anything else may pass.
func valuesOutcome(err error) loop.Outcome {
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
	var missing *missingValuesError
	var putOff *render.PutOffError
	switch {
	case errors.Is(err, render.ErrPending):
		return valuesPending(err)
	case errors.As(err, &missing):
		stalled.Reason = kubermaticv1.ReasonValuesMissing
	case errors.As(err, &putOff):
		stalled.Recheck = max(time.Until(putOff.Until), time.Second)
	case !render.Lasting(err) && !isInvalid(err):
		return failed(err)
	}
	return stalled
}

// valuesPending is the outcome while a valuesTemplate is being rendered.
func valuesPending(err error) loop.Outcome {
	return loop.Waiting{
		Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
	}
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

func mergeAndCheck(entry *kubermaticv1.AddonVersion, layers []values.Layer) (map[string]any, values.Origins, error) {
	merged, origins, err := values.Merge(layers)
	if err != nil {
		return nil, nil, err
	}
	given := layers[len(layers)-1].Values
	return merged, origins, values.CheckForm(entry.Template.FormSpec, given, merged)
}

// unknownKeys tells what a user may have misspelt. What a chart knows by itself is not known here.
func unknownKeys(f *facts, layers []values.Layer) string {
	entry := f.choice.Version
	if len(entry.Template.FormSpec) == 0 {
		return ""
	}
	known, _, err := values.Merge(layers[:2]) // the catalogue's values, and what its valuesTemplate makes
	if err != nil {
		return ""
	}
	told := values.UnknownKeys(entry.Template.FormSpec, known, layers[len(layers)-1].Values, entry.Template.Method == kubermaticv1.MethodHelm)
	if len(told) == 0 {
		return ""
	}
	return values.PlaceOf(f.installation) + ": " + strings.Join(told, "; ")
}

// layers in the order of design: what the catalogue says, what the form says, what others say, what the user says. A core
// item's values are in spec.values, where the core add-on controller puts them.
func (r *Reconciler) layers(ctx context.Context, f *facts) ([]values.Layer, error) {
	catalogueValues, err := decode("the catalogue's values", f.choice.Version.Values)
	if err != nil {
		return nil, err
	}
	templateValues, err := r.valuesOfTemplate(ctx, f)
	if err != nil {
		return nil, err
	}
	defaults, err := values.FormDefaults(f.choice.Version.Template.FormSpec)
	if err != nil {
		return nil, err
	}
	layers := []values.Layer{
		{Origin: originCatalogue, Values: catalogueValues}, {Origin: originTemplate, Values: templateValues},
		{Origin: originForm, Values: defaults},
	}
	for i, source := range f.installation.Spec.ValuesFrom {
		layer, err := r.valuesFrom(ctx, f.installation.Namespace, source)
		if err == nil {
			err = checkMarks(f, layer)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		layers = append(layers, values.Layer{Origin: fmt.Sprintf("valuesFrom[%d]", i), Values: layer})
	}
	own, err := decode("spec.values", f.installation.Spec.Values)
	if err != nil {
		return nil, err
	}
	if err := checkMarks(f, own); err != nil {
		return nil, fmt.Errorf("%s: %w", values.PlaceOf(f.installation), err)
	}
	return append(layers, values.Layer{Origin: originUser, Values: own}), nil
}

// checkMarks refuses template marks in a layer that is not the catalogue's, where templates see the secrets of the cluster: a
// chart that gives the layer to tpl would run what stands there.
func checkMarks(f *facts, layer map[string]any) error {
	if !seesSecrets(f) {
		return nil
	}
	return values.CheckMarks(layer)
}

// valuesOfTemplate renders the catalogue's valuesTemplate, if it has one. Renderings are kept, so that one that changes
// nothing costs nothing.
func (r *Reconciler) valuesOfTemplate(ctx context.Context, f *facts) (map[string]any, error) {
	if f.choice.Version.ValuesTemplate == "" {
		return nil, nil
	}
	return r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(f), Tenant: tenantOf(f), Template: f.choice.Version.ValuesTemplate, Data: f.data,
	}, r.waker(f.installation))
}

func decode(what string, raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return map[string]any{}, nil
	}
	decoded, err := values.Decode(raw.Raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return decoded, nil
}
