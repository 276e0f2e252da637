package resolution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values"
)

const defaultValuesKey = "values.yaml"

// MissingValuesError reports that a required object does not exist, or may not be read.
type MissingValuesError struct {
	what string
	// IsAbsent says that an object of objectRef, or its part, does not exist.
	IsAbsent bool
}

func (e *MissingValuesError) Error() string { return e.what }

// Values reads a marked object of the installation's own namespace that valuesFrom names.
func (r References) Values(ctx context.Context, namespace string, source v1.ValuesSource) (map[string]any, error) {
	var data []byte
	var reference *v1.KeyReference
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
		return nil, &MissingValuesError{what: "it is empty: set one of secretRef, configMapRef, providerRef and objectRef"}
	}
	var missing *MissingValuesError
	if errors.As(err, &missing) && reference != nil && reference.Optional {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	decoded, err := decodeKey(data, reference)
	if err != nil {
		return nil, fmt.Errorf("key %q of %q: %w", keyOf(reference), reference.Name, err)
	}
	return decoded, nil
}

// decodeKey decodes a key's data: a document of values, or a text with one.
func decodeKey(data []byte, reference *v1.KeyReference) (map[string]any, error) {
	if reference.TargetPath == "" {
		return values.Decode(data)
	}
	return values.TextAt(reference.TargetPath, data)
}

func (r References) providerSecret(
	ctx context.Context, namespace string, provider *v1.ProviderReference,
) (*v1.KeyReference, error) {
	object, err := r.Providers.ProviderObject(ctx, ProviderKind(provider), client.ObjectKey{Namespace: namespace, Name: provider.Name})
	var none *target.ProviderError
	if errors.As(err, &none) {
		return nil, &MissingValuesError{what: none.Error()}
	}
	if err != nil {
		return nil, err
	}
	name, _, err := unstructured.NestedString(object, "status", "secretRef", "name")
	if err != nil || name == "" {
		return nil, &MissingValuesError{what: fmt.Sprintf("%s %q names no Secret in status.secretRef.name yet", ProviderKind(provider), provider.Name)}
	}
	return &v1.KeyReference{Name: name}, nil
}

// ProviderKind is the kind of the object that a reference names.
func ProviderKind(provider *v1.ProviderReference) schema.GroupKind {
	return schema.GroupKind{Group: provider.APIGroup, Kind: provider.Kind}
}

func (r References) secretValues(ctx context.Context, namespace string, reference *v1.KeyReference) ([]byte, error) {
	key := client.ObjectKey{Namespace: namespace, Name: reference.Name}
	secret, err := r.Secret(ctx, key)
	if reference.Optional && apierrors.IsNotFound(err) {
		return nil, &MissingValuesError{what: "the optional Secret is missing"} // without a call to find the reason
	}
	if err := r.markedForValues(ctx, "Secret", key, secret, err); err != nil {
		return nil, err
	}
	data, ok := secret.Data[keyOf(reference)]
	return data, keyFound(ok, "Secret", reference)
}

func (r References) configMapValues(ctx context.Context, namespace string, reference *v1.KeyReference) ([]byte, error) {
	key := client.ObjectKey{Namespace: namespace, Name: reference.Name}
	configMap, err := r.ConfigMap(ctx, key)
	if reference.Optional && apierrors.IsNotFound(err) {
		return nil, &MissingValuesError{what: "the optional ConfigMap is missing"}
	}
	if err := r.markedForValues(ctx, "ConfigMap", key, configMap, err); err != nil {
		return nil, err
	}
	data, ok := configMap.Data[keyOf(reference)]
	return []byte(data), keyFound(ok, "ConfigMap", reference)
}

// markedForValues requires the label: other Secrets of a cluster namespace must not be readable. err is that of reading the object from
// the cache, which holds marked ones only.
func (r References) markedForValues(ctx context.Context, kind string, key client.ObjectKey, object client.Object, err error) error {
	if err == nil && object.GetLabels()[v1.LabelUse] == v1.UseValues {
		return nil
	}
	isThere := err == nil
	if apierrors.IsNotFound(err) {
		isThere, err = r.IsThere(ctx, kind, key)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s %q: %w", kind, key.Name, err)
	case isThere:
		return &MissingValuesError{what: fmt.Sprintf("%s %q has no label %s=%s, so values are not read from it: add the label",
			kind, key.Name, v1.LabelUse, v1.UseValues)}
	}
	return &MissingValuesError{what: fmt.Sprintf("there is no %s %q in namespace %q: create it, with label %s=%s",
		kind, key.Name, key.Namespace, v1.LabelUse, v1.UseValues)}
}

func keyOf(reference *v1.KeyReference) string {
	if reference.Key == "" {
		return defaultValuesKey
	}
	return reference.Key
}

func keyFound(ok bool, kind string, reference *v1.KeyReference) error {
	if ok {
		return nil
	}
	return &MissingValuesError{what: fmt.Sprintf("%s %q has no key %q", kind, reference.Name, keyOf(reference))}
}

// Reads reports whether an installation reads a marked object of its namespace for values.
func (r References) Reads(ctx context.Context, installation *v1.AddonInstallation, object client.Object) bool {
	_, isSecret := object.(*corev1.Secret)
	name := object.GetName()
	return slices.ContainsFunc(installation.Spec.ValuesFrom, func(source v1.ValuesSource) bool {
		switch {
		case !isSecret:
			return source.ConfigMapRef != nil && source.ConfigMapRef.Name == name
		case source.SecretRef != nil:
			return source.SecretRef.Name == name
		case source.ProviderRef == nil:
			return false
		}
		secret, err := r.providerSecret(ctx, installation.Namespace, source.ProviderRef)
		var missing *MissingValuesError
		return err == nil && secret.Name == name || err != nil && !errors.As(err, &missing)
	})
}
