package resolution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
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
	// IsUnwatched: no event reports that the object exists now, so it has to be read again.
	IsUnwatched bool
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
		data, err = r.secretValues(ctx, namespace, reference, "")
	case source.ConfigMapRef != nil:
		reference = source.ConfigMapRef
		data, err = r.configMapValues(ctx, namespace, reference)
	case source.ProviderRef != nil:
		if reference, data, err = r.providedValues(ctx, namespace, source.ProviderRef); err == nil && reference == nil {
			return map[string]any{}, nil
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

// providedValues reads the Secret that a provider's object names. The reference is nil if the object is optional and missing. An
// object that exists will name a Secret, so its values are awaited even if it is optional.
func (r References) providedValues(
	ctx context.Context, namespace string, provider *v1.ProviderReference,
) (*v1.KeyReference, []byte, error) {
	name, uid, err := r.providedSecret(ctx, client.ObjectKey{Namespace: namespace, Name: provider.Name}, ProviderKind(provider))
	var none *target.ProviderError
	switch {
	case errors.As(err, &none) && none.IsMissing && provider.Optional:
		return nil, nil, nil
	case none != nil:
		return nil, nil, &MissingValuesError{what: none.Error()}
	case err != nil:
		return nil, nil, err
	}
	reference := &v1.KeyReference{Name: name}
	data, err := r.secretValues(ctx, namespace, reference, uid)
	var missing *MissingValuesError
	if errors.As(err, &missing) {
		missing.what += "; a Secret needs no label if its controller (in ownerReferences) is the object of providerRef"
		missing.IsUnwatched = true
	}
	return reference, data, err
}

// providedSecret reads status.secretRef of a provider's object: the name of a Secret, as a text or in field name. It also returns the
// object's UID. Errors: *target.ProviderError, or the reader's.
func (r References) providedSecret(ctx context.Context, key types.NamespacedName, kind schema.GroupKind) (string, types.UID, error) {
	object, err := r.Providers.ProviderObject(ctx, kind, key)
	if err != nil {
		return "", "", err
	}
	problem := func(text string) error { return &target.ProviderError{Kind: kind, Name: key.Name, Problem: text} }
	reference, _, _ := unstructured.NestedFieldNoCopy(object, "status", "secretRef")
	if fields, isObject := reference.(map[string]any); isObject {
		reference = fields["name"]
	}
	name, isText := reference.(string)
	switch {
	case !isText || name == "":
		return "", "", problem("names no Secret in status.secretRef yet")
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return "", "", problem("has a status.secretRef that can't be the name of a Secret")
	}
	return name, (&unstructured.Unstructured{Object: object}).GetUID(), nil
}

// ProviderKind is the kind of the object that a reference names.
func ProviderKind(provider *v1.ProviderReference) schema.GroupKind {
	return schema.GroupKind{Group: provider.APIGroup, Kind: provider.Kind}
}

// secretValues reads a marked Secret, or one whose controller is the provider's object of this UID.
func (r References) secretValues(
	ctx context.Context, namespace string, reference *v1.KeyReference, provider types.UID,
) ([]byte, error) {
	key := client.ObjectKey{Namespace: namespace, Name: reference.Name}
	secret, err := r.Secret(ctx, key)
	if reference.Optional && apierrors.IsNotFound(err) {
		return nil, &MissingValuesError{what: "the optional Secret is missing"} // without a call to find the reason
	}
	isMarked := err == nil && secret.Labels[v1.LabelUse] == v1.UseValues
	if !isMarked && provider != "" && client.IgnoreNotFound(err) == nil {
		found, unmarkedErr := r.Unmarked(ctx, key)
		if client.IgnoreNotFound(unmarkedErr) != nil {
			return nil, fmt.Errorf("secret %q: %w", key.Name, unmarkedErr)
		}
		if controller := metav1.GetControllerOfNoCopy(found); controller != nil && controller.UID == provider {
			data, ok := found.Data[keyOf(reference)]
			return data, keyFound(ok, "Secret", reference)
		}
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
		provider := client.ObjectKey{Namespace: installation.Namespace, Name: source.ProviderRef.Name}
		provided, _, err := r.providedSecret(ctx, provider, ProviderKind(source.ProviderRef))
		var none *target.ProviderError
		return err == nil && provided == name || err != nil && !errors.As(err, &none)
	})
}
