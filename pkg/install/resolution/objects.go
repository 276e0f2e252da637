package resolution

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Read is the content of a source of values.
type Read struct {
	Values map[string]any
	// Registries maps registries to their mirrors: an AddOnDeploymentConfig may name some.
	Registries map[string]string
	// IsMissing says that an optional object, or its part, does not exist.
	IsMissing bool
}

// Object reads the values of an object in the installation's own namespace. For a chart, an AddOnDeploymentConfig has
// other names than for manifests.
func (r References) Object(ctx context.Context, namespace string, ref *v1.ObjectReference, isChart bool) (Read, error) {
	kind := ObjectKind(ref)
	read, err := r.object(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, ref, isChart)
	missing, isMissing := errors.AsType[*target.ProviderError](err)
	switch {
	case isMissing && missing.IsMissing && ref.Optional, errors.Is(err, values.ErrNoPart) && ref.Optional:
		return Read{Values: map[string]any{}, IsMissing: true}, nil
	case isMissing:
		return Read{}, &MissingValuesError{what: err.Error(), IsAbsent: missing.IsMissing}
	case errors.Is(err, values.ErrNoPart):
		return Read{}, &MissingValuesError{what: fmt.Sprintf("%s %q has nothing at %q", kind, ref.Name, cmp.Or(ref.Path, "spec")), IsAbsent: true}
	case err != nil:
		return Read{}, fmt.Errorf("%s %q: %w", kind, ref.Name, err)
	}
	return read, nil
}

func (r References) object(ctx context.Context, key client.ObjectKey, ref *v1.ObjectReference, isChart bool) (Read, error) {
	if err := values.CheckObject(ref); err != nil { // what admission and schema refuse may have been written past them
		return Read{}, &MissingValuesError{what: err.Error()}
	}
	object, err := r.Providers.ProviderObject(ctx, ObjectKind(ref), key)
	if err != nil {
		return Read{}, err
	}
	if ObjectKind(ref) != values.DeploymentConfigKind || ref.Path != "" || ref.TargetPath != "" {
		part, err := values.Part(object, ref)
		return Read{Values: part}, err
	}
	made, mirrors, err := values.DeploymentConfig(object, isChart)
	if err != nil {
		return Read{}, err
	}
	if len(mirrors) > 0 {
		if _, err := r.Images.With(mirrors); err != nil {
			return Read{}, &values.DecodeError{Problem: "spec.registries has a source or a mirror that is not a registry with a path"}
		}
	}
	return Read{Values: made, Registries: mirrors}, nil
}

// ObjectKind is the kind of the object that a reference names.
func ObjectKind(ref *v1.ObjectReference) schema.GroupKind {
	return schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
}
