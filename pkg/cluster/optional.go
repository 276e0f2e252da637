package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/target"
)

// discoveryInterval is the time between checks for kinds that the seed does not serve.
const discoveryInterval = time.Minute

type optionalKind struct {
	kind schema.GroupKind
	// typed is an empty object of the kind; nil: only metadata is watched.
	typed client.Object
	// everywhere: an object concerns all clusters, not only that of its namespace.
	everywhere bool
	// differs says whether a change counts; nil: all do.
	differs func(before, after client.Object) bool
}

// optionalKinds watches the kinds that are served. A controller's own watch of a missing kind would
// keep the manager from starting.
type optionalKinds struct {
	objects cache.Cache
	mapper  meta.RESTMapper
	wanted  []optionalKind
	// interval is discoveryInterval, except in tests.
	interval time.Duration

	mutex sync.Mutex
	// now has the known kinds; nil for a kind that is not served.
	now         map[schema.GroupKind]*schema.GroupVersionKind
	watched     map[schema.GroupKind]bool
	subscribers []func(Change)
}

func (k *optionalKinds) subscribe(changed func(Change)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.subscribers = append(k.subscribers, changed)
}

// version is the served version of a kind; nil if it is not served as far as is known. Only the
// first call asks the API server; start asks again.
func (k *optionalKinds) version(kind schema.GroupKind) (*schema.GroupVersionKind, error) {
	k.mutex.Lock()
	known, asked := k.now[kind]
	k.mutex.Unlock()
	if asked {
		return known, nil
	}
	return k.resolve(kind)
}

func (k *optionalKinds) resolve(kind schema.GroupKind) (*schema.GroupVersionKind, error) {
	mapping, err := k.mapper.RESTMapping(kind)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("asking for kind %s: %w", kind, err)
	}
	var served *schema.GroupVersionKind
	if err == nil {
		served = &mapping.GroupVersionKind
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.now[kind] == nil {
		k.now[kind] = served
	}
	return k.now[kind], nil
}

func (k *optionalKinds) start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, k.interval, true, func(ctx context.Context) (bool, error) {
		missing := 0
		for _, wanted := range k.wanted {
			if !k.watch(ctx, wanted) {
				missing++
			}
		}
		return missing == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() != nil {
		err = nil // the manager ends
	}
	return err
}

func (k *optionalKinds) watch(ctx context.Context, wanted optionalKind) bool {
	k.mutex.Lock()
	done := k.watched[wanted.kind]
	k.mutex.Unlock()
	if done {
		return true
	}
	served, err := k.resolve(wanted.kind)
	if err == nil && served == nil {
		return false
	}
	if err == nil {
		err = k.handle(ctx, wanted, *served)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "watching a kind of the platform; tried again", "kind", wanted.kind.String())
		return false
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.watched == nil {
		k.watched = map[schema.GroupKind]bool{}
	}
	k.watched[wanted.kind] = true
	return true
}

func (k *optionalKinds) handle(ctx context.Context, wanted optionalKind, served schema.GroupVersionKind) error {
	object := wanted.typed
	if object == nil {
		object = asMetadata(served)
	}
	informer, err := k.objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { k.notify(wanted, object) },
		UpdateFunc: func(before, after any) {
			one, isOne := before.(client.Object)
			other, isOther := after.(client.Object)
			if !isOne || !isOther || wanted.differs == nil || wanted.differs(one, other) {
				k.notify(wanted, after)
			}
		},
		DeleteFunc: func(object any) { k.notify(wanted, object) },
	})
	return err
}

func (k *optionalKinds) notify(wanted optionalKind, object any) {
	if tombstone, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	changed, ok := object.(client.Object)
	if !ok {
		return
	}
	change := Change{Kind: wanted.kind, Cluster: target.Ref{Namespace: changed.GetNamespace()}, Name: changed.GetName()}
	if wanted.everywhere {
		change.Cluster = target.Ref{}
	}
	k.mutex.Lock()
	subscribers := k.subscribers
	k.mutex.Unlock()
	for _, subscriber := range subscribers {
		subscriber(change)
	}
}
