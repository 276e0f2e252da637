package resolution

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// References reads the objects that valuesFrom and sources name on the seed.
type References struct {
	// Secret and ConfigMap read whole objects with our mark.
	Secret    func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	ConfigMap func(ctx context.Context, key types.NamespacedName) (*corev1.ConfigMap, error)
	// Unmarked reads a Secret from the API server, with or without our mark. It is for Secrets that a provider's object controls.
	Unmarked func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	// IsThere reports whether the seed has an object of this kind, marked or not.
	IsThere   func(ctx context.Context, kind string, key types.NamespacedName) (bool, error)
	Providers Providers
	// Images check the mirrors that an object names.
	Images             images.Rules
	SourceKinds        fetch.Kinds
	CatalogueNamespace string
}

// Providers reads objects of kinds that providerRef and objectRef may name.
type Providers interface {
	ProviderObject(ctx context.Context, kind schema.GroupKind, key types.NamespacedName) (map[string]any, error)
}
