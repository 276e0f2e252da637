package cluster

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onChange watches objects with a cache, and calls a function for each change: before is nil for an object that is
// new to the cache, after is nil for a deleted one. It does not wait.
func onChange[O client.Object](
	ctx context.Context, in cache.Cache, object client.Object, changed func(before, after O),
) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := in.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	notify := func(before, after any) {
		was, had := objectIn[O](before)
		is, has := objectIn[O](after)
		if had || has {
			changed(was, is)
		}
	}
	return informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(after any) { notify(nil, after) }, UpdateFunc: notify, DeleteFunc: func(before any) { notify(before, nil) },
	})
}

// objectIn is the object in an event, also if the deletion was missed.
func objectIn[O client.Object](event any) (object O, ok bool) {
	if tombstone, missed := event.(toolscache.DeletedFinalStateUnknown); missed {
		event = tombstone.Obj
	}
	object, ok = event.(O)
	return object, ok
}
