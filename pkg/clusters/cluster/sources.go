package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// queue is filled by sources.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources combines several sources of a controller.
type sources []source.Source

// Start implements source.Source.
func (s sources) Start(ctx context.Context, into queue) error {
	failures := make([]error, 0, len(s))
	for _, one := range s {
		failures = append(failures, one.Start(ctx, into))
	}
	return errors.Join(failures...)
}

// WaitForSync implements source.SyncingSource.
func (s sources) WaitForSync(ctx context.Context) error {
	failures := make([]error, 0, len(s))
	for _, one := range s {
		failures = append(failures, waitForSync(ctx, one))
	}
	return errors.Join(failures...)
}

func waitForSync(ctx context.Context, one source.Source) error {
	if syncing, ok := one.(source.SyncingSource); ok {
		return syncing.WaitForSync(ctx)
	}
	return nil
}

// whenServed is a source of objects of a kind, once it is served. Its controller does not wait for it.
type whenServed struct {
	finders *Finders
	kind    schema.GroupKind
	source  source.Source
	// isServed says that the kind was served when the controller started.
	isServed bool
}

// Start implements source.Source.
func (s *whenServed) Start(ctx context.Context, into queue) error {
	_, s.isServed = s.finders.kinds.begun(s.kind)
	return s.finders.WhenServed(ctx, s.kind, func(context.Context) error { return s.source.Start(ctx, into) })
}

// WaitForSync implements source.SyncingSource.
func (s *whenServed) WaitForSync(ctx context.Context) error {
	if !s.isServed {
		return nil
	}
	return waitForSync(ctx, s.source)
}

// Watch implements Finder.
func (f *Finders) Watch(informers cache.Cache, requests Requests, relevant Relevant) source.Source {
	var all sources
	if f.kkp != nil {
		all = append(all, &whenServed{finders: f, kind: target.KindKKP, source: f.kkp.Watch(informers, requests, relevant)})
	}
	if f.capi != nil {
		all = append(all, f.capi.Watch(informers, requests, relevant))
	}
	return all
}

// Inform starts a watch of Clusters in a cache, also on replicas that don't lead. It calls removed, if not nil, with
// Clusters that are deleted or change their Ref.
func (f *Finders) Inform(ctx context.Context, informers cache.Cache, removed func(target.Ref)) error {
	if f.capi != nil {
		f.capi.Inform(removed)
	}
	if f.kkp == nil {
		return nil
	}
	return f.WhenServed(ctx, target.KindKKP, func(ctx context.Context) error { return f.kkp.Inform(ctx, informers, removed) })
}
