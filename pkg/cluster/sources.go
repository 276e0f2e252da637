package cluster

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// queue is what sources fill.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources are one source of a controller.
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

// whenServed is a source of objects of a kind, from when it is served. Until then its controller
// waits for nothing.
type whenServed struct {
	finders *Finders
	kind    schema.GroupKind
	source  source.Source
	// isServed says that it was served when the controller started.
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
