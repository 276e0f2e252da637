package wiring

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-addons/trellis/pkg/serve/query"
)

// QueryClients verifies client certificates of the query endpoint by the API server's authorities, which it watches in a cache of its own.
func QueryClients(ctx context.Context, made manager.Manager) (*query.Clients, error) {
	held, err := FurtherCache(made, map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
		Field:      fields.OneTermEqualSelector("metadata.name", query.ClientAuthorities),
		Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}}, Transform: cache.TransformStripManagedFields(),
	}})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of the authorities of clients: %w", err)
	}
	clients := &query.Clients{}
	return clients, errors.Join(clients.Watch(ctx, held), made.Add(held))
}
