package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/values"
)

// defaultValuesKey is the key of a valuesFrom object where none is named.
const defaultValuesKey = "values.yaml"

// valuesFrom reads one marked object of the installation's own namespace.
func (r *Reconciler) valuesFrom(ctx context.Context, namespace string, source kubermaticv1.ValuesSource) (map[string]any, error) {
	var data []byte
	var reference *kubermaticv1.KeyReference
	var err error
	switch {
	case source.SecretRef != nil:
		reference = source.SecretRef
		data, err = r.secretValues(ctx, namespace, reference)
	case source.ConfigMapRef != nil:
		reference = source.ConfigMapRef
		data, err = r.configMapValues(ctx, namespace, reference)
	case source.ProviderRef != nil:
		if reference, err = r.providerSecret(ctx, namespace, source.ProviderRef); err == nil {
			data, err = r.secretValues(ctx, namespace, reference)
		}
	default:
		return nil, &missingValuesError{"it names nothing: set one of secretRef, configMapRef and providerRef"}
	}
	var missing *missingValuesError
	if errors.As(err, &missing) && reference != nil && reference.Optional {
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

// providerSecret is the Secret that a provider's object names.
func (r *Reconciler) providerSecret(
	ctx context.Context, namespace string, provider *kubermaticv1.ProviderReference,
) (*kubermaticv1.KeyReference, error) {
	name, err := r.Platform.ProviderSecret(ctx, kindOf(provider), client.ObjectKey{Namespace: namespace, Name: provider.Name})
	var none *cluster.ProviderError
	if errors.As(err, &none) {
		return nil, &missingValuesError{none.Error()}
	}
	return &kubermaticv1.KeyReference{Name: name}, err
}

func kindOf(provider *kubermaticv1.ProviderReference) schema.GroupKind {
	return schema.GroupKind{Group: provider.APIGroup, Kind: provider.Kind}
}

func (r *Reconciler) secretValues(ctx context.Context, namespace string, reference *kubermaticv1.KeyReference) ([]byte, error) {
	secret, err := readMarked[corev1.Secret](ctx, r, client.ObjectKey{Namespace: namespace, Name: reference.Name})
	if err := markedForValues("Secret", reference, secret, err); err != nil {
		return nil, err
	}
	data, ok := secret.Data[keyOf(reference)]
	return data, keyFound(ok, "Secret", reference)
}

func (r *Reconciler) configMapValues(ctx context.Context, namespace string, reference *kubermaticv1.KeyReference) ([]byte, error) {
	configMap, err := readMarked[corev1.ConfigMap](ctx, r, client.ObjectKey{Namespace: namespace, Name: reference.Name})
	if err := markedForValues("ConfigMap", reference, configMap, err); err != nil {
		return nil, err
	}
	data, ok := configMap.Data[keyOf(reference)]
	return []byte(data), keyFound(ok, "ConfigMap", reference)
}

// markedForValues judges what was read: an object has to say itself that it may be read for values, since a cluster namespace holds
// keys that must not be readable this way.
func markedForValues(kind string, reference *kubermaticv1.KeyReference, object client.Object, err error) error {
	if apierrors.IsNotFound(err) || err == nil && object.GetLabels()[kubermaticv1.LabelUse] != kubermaticv1.UseValues {
		return &missingValuesError{fmt.Sprintf("no %s %q with label %s=%s in this namespace",
			kind, reference.Name, kubermaticv1.LabelUse, kubermaticv1.UseValues)}
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

// readers are the installations of a list that read a marked object of their namespace.
func (r *Reconciler) readers(
	ctx context.Context, list []kubermaticv1.AddonInstallation, object client.Object,
) []*kubermaticv1.AddonInstallation {
	_, isSecret := object.(*corev1.Secret)
	var found []*kubermaticv1.AddonInstallation
	for i := range list {
		for _, source := range list[i].Spec.ValuesFrom {
			if r.reads(ctx, list[i].Namespace, source, object.GetName(), isSecret) {
				found = append(found, &list[i])
				break
			}
		}
	}
	return found
}

func (r *Reconciler) reads(ctx context.Context, namespace string, source kubermaticv1.ValuesSource, name string, isSecret bool) bool {
	switch {
	case !isSecret:
		return source.ConfigMapRef != nil && source.ConfigMapRef.Name == name
	case source.SecretRef != nil:
		return source.SecretRef.Name == name
	case source.ProviderRef != nil:
		secret, err := r.providerSecret(ctx, namespace, source.ProviderRef)
		var missing *missingValuesError
		return err == nil && secret.Name == name || err != nil && !errors.As(err, &missing)
	}
	return false
}
