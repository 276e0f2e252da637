package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
)

// newMarks reads the key of merged catalogues before the manager's caches run, and then watches its Secret.
func (s *seed) newMarks(ctx context.Context) (*mergedcatalogue.Marks, error) {
	marks := mergedcatalogue.New(s.GetLogger().WithName("merged"))
	if err := marks.Read(ctx, s.direct, s.options.Namespace); err != nil {
		return nil, err
	}
	held, err := wiring.FurtherCache(s, map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Field:      fields.OneTermEqualSelector("metadata.name", kubermaticv1.SecretCatalogueKey),
		Namespaces: map[string]cache.Config{s.options.Namespace: {}}, Transform: cache.TransformStripManagedFields(),
	}})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of Secret %q: %w", kubermaticv1.SecretCatalogueKey, err)
	}
	if err := marks.Follow(ctx, held); err != nil {
		return nil, err
	}
	return marks, s.Add(held)
}
