package loop

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Register adds a controller to a manager, with the sources of its requests. It traces its reconciliations.
func Register(mgr manager.Manager, name string, options controller.Options, sources ...source.Source) error {
	options.Reconciler, options.RateLimiter = Traced(name, options.Reconciler), ErrorWaits()
	built, err := controller.New(name, mgr, options)
	if err != nil {
		return fmt.Errorf("creating controller %s: %w", name, err)
	}
	for _, watch := range sources {
		if err := built.Watch(watch); err != nil {
			return fmt.Errorf("watching for controller %s: %w", name, err)
		}
	}
	return nil
}

// Cache creates a separate cache for some kinds: its restrictions apply to all forms of a kind.
func Cache(mgr manager.Manager, held map[client.Object]cache.ByObject) (cache.Cache, error) {
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: held,
	})
}

// Metadata is an empty object of a kind, for clients and caches that read only the metadata.
func Metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	about := &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(kind)
	return about
}
