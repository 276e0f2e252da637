package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
)

// newMarks reads the key of merged catalogues before the caches run, and then watches its Secret.
func newMarks(ctx context.Context, made manager.Manager, namespace string) (*mergedcatalogue.Marks, error) {
	direct, err := client.New(made.GetConfig(), client.Options{Scheme: made.GetScheme(), HTTPClient: made.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	marks := mergedcatalogue.New(made.GetLogger().WithName("merged"))
	if err := marks.Read(ctx, direct, namespace); err != nil {
		return nil, err
	}
	held, err := cache.New(made.GetConfig(), cache.Options{
		Scheme: made.GetScheme(), Mapper: made.GetRESTMapper(), HTTPClient: made.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Field:      fields.OneTermEqualSelector("metadata.name", kubermaticv1.SecretCatalogueKey),
			Namespaces: map[string]cache.Config{namespace: {}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of Secret %q: %w", kubermaticv1.SecretCatalogueKey, err)
	}
	if err := marks.Follow(ctx, held); err != nil {
		return nil, err
	}
	return marks, made.Add(held)
}
