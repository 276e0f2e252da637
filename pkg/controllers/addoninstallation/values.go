package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/templatedata"
	"github.com/trellis-addons/trellis/pkg/values"
)

// defaultValuesKey is the key of a valuesFrom object where none is named.
const defaultValuesKey = "values.yaml"

// missingValuesError: a referenced object that has to be there is not.
type missingValuesError struct{ what string }

func (e *missingValuesError) Error() string { return e.what }

// refusedValuesError: the catalogue asks for what this release does not do.
type refusedValuesError struct{ what string }

func (e *refusedValuesError) Error() string { return e.what }

// resolveValues puts the layers together, lowest first, and checks them against the form.
func (r *Reconciler) resolveValues(ctx context.Context, f *facts) loop.Outcome {
	layers, err := r.layers(ctx, f)
	if err == nil {
		f.values, err = mergeAndCheck(f.entry, layers)
	}
	if err == nil {
		f.data, err = templatedata.New(f.cluster, templatedata.Options{})
	}
	if err == nil {
		return nil
	}
	var missing *missingValuesError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &missing):
		return loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesMissing, Message: err.Error()}
	case errors.As(err, &status):
		return failed(err)
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
}

func mergeAndCheck(entry *kubermaticv1.AddonVersion, layers []values.Layer) (map[string]any, error) {
	merged, _, err := values.Merge(layers)
	if err != nil {
		return nil, err
	}
	given := layers[len(layers)-1].Values
	return merged, values.CheckForm(entry.Template.FormSpec, given, merged)
}

func (r *Reconciler) layers(ctx context.Context, f *facts) ([]values.Layer, error) {
	if f.entry.ValuesTemplate != "" {
		return nil, &refusedValuesError{"valuesTemplate is not served by this release; use values"}
	}
	catalogueValues, err := decode("the catalogue's values", f.entry.Values)
	if err != nil {
		return nil, err
	}
	defaults, err := values.FormDefaults(f.entry.Template.FormSpec)
	if err != nil {
		return nil, err
	}
	layers := []values.Layer{{Origin: "catalogue", Values: catalogueValues}, {Origin: "form defaults", Values: defaults}}
	for i, source := range f.installation.Spec.ValuesFrom {
		layer, err := r.valuesFrom(ctx, f.installation.Namespace, source)
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		layers = append(layers, values.Layer{Origin: fmt.Sprintf("valuesFrom[%d]", i), Values: layer})
	}
	own, err := decode("spec.values", f.installation.Spec.Values)
	if err != nil {
		return nil, err
	}
	return append(layers, values.Layer{Origin: "installation", Values: own}), nil
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

// valuesFrom reads one marked object of the installation's own namespace.
func (r *Reconciler) valuesFrom(ctx context.Context, namespace string, source kubermaticv1.ValuesSource) (map[string]any, error) {
	var reference *kubermaticv1.KeyReference
	var data []byte
	var err error
	switch {
	case source.SecretRef != nil:
		reference = source.SecretRef
		data, err = r.secretValues(ctx, namespace, reference)
	case source.ConfigMapRef != nil:
		reference = source.ConfigMapRef
		data, err = r.configMapValues(ctx, namespace, reference)
	default:
		return nil, &missingValuesError{"providerRef is not served by this release; use secretRef or configMapRef"}
	}
	var missing *missingValuesError
	if errors.As(err, &missing) && reference.Optional {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	decoded, err := values.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("key %q of %q: %w", keyOf(reference), reference.Name, err)
	}
	return decoded, nil
}

func (r *Reconciler) secretValues(ctx context.Context, namespace string, reference *kubermaticv1.KeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := r.marked(ctx, "Secret", client.ObjectKey{Namespace: namespace, Name: reference.Name}, secret); err != nil {
		return nil, err
	}
	data, ok := secret.Data[keyOf(reference)]
	return data, keyFound(ok, "Secret", reference)
}

func (r *Reconciler) configMapValues(ctx context.Context, namespace string, reference *kubermaticv1.KeyReference) ([]byte, error) {
	configMap := &corev1.ConfigMap{}
	if err := r.marked(ctx, "ConfigMap", client.ObjectKey{Namespace: namespace, Name: reference.Name}, configMap); err != nil {
		return nil, err
	}
	data, ok := configMap.Data[keyOf(reference)]
	return []byte(data), keyFound(ok, "ConfigMap", reference)
}

// marked reads an object that says itself that it may be read for values: a cluster namespace holds keys that must not
// be readable this way.
func (r *Reconciler) marked(ctx context.Context, kind string, key client.ObjectKey, object client.Object) error {
	err := r.Marked.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || err == nil && object.GetLabels()[kubermaticv1.LabelUse] != kubermaticv1.UseValues {
		return &missingValuesError{fmt.Sprintf("no %s %q with label %s=%s in this namespace",
			kind, key.Name, kubermaticv1.LabelUse, kubermaticv1.UseValues)}
	}
	return err
}

func keyOf(reference *kubermaticv1.KeyReference) string {
	if reference.Key == "" {
		return defaultValuesKey
	}
	return reference.Key
}

func keyFound(ok bool, kind string, reference *kubermaticv1.KeyReference) error {
	if ok {
		return nil
	}
	return &missingValuesError{fmt.Sprintf("%s %q has no key %q", kind, reference.Name, keyOf(reference))}
}

// hostsOf is where a source Secret's credentials may be sent.
func hostsOf(secret *corev1.Secret) []string {
	var hosts []string
	for host := range strings.SplitSeq(secret.Annotations[kubermaticv1.AnnotationHosts], ",") {
		if host = strings.TrimSpace(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
