package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// discoveryInterval is the time between checks for kinds that the seed does not serve.
const discoveryInterval = time.Minute

type optionalKind struct {
	// kind or, if only that is known, the group and the plural of its resource.
	kind       schema.GroupKind
	isResource bool
	// versions are the accepted ones, best first; nil: the one that the API server prefers.
	versions []string
	// begin is called once the kind is served, until it succeeds; nil: its objects are watched.
	begin func(ctx context.Context, served schema.GroupVersionKind) error
	// typed is an empty object of the kind; nil: only metadata is watched.
	typed client.Object
	// everywhere: an object concerns all clusters, not only that of its namespace.
	everywhere bool
	// isOfKKP: an object concerns the cluster that KKP keeps in its namespace, and no other there.
	isOfKKP bool
	// differs reports whether a change counts; nil: all do.
	differs func(before, after client.Object) bool
}

// optionalKinds watches the kinds that are served, or calls their begin functions, regardless of which other kinds
// exist. A controller's own watch of a missing kind would prevent the manager from starting.
type optionalKinds struct {
	// objects is the cache for kinds without a begin function.
	objects cache.Cache
	mapper  meta.RESTMapper
	wanted  []optionalKind
	// newMapper creates a mapper without cached answers, to find versions that are no longer served;
	// nil: they are not checked.
	newMapper func() (meta.RESTMapper, error)
	// interval is discoveryInterval, except in tests.
	interval time.Duration

	mutex sync.Mutex
	// now has the known kinds; nil for a kind that is not served.
	now         map[schema.GroupKind]*schema.GroupVersionKind
	watched     map[schema.GroupKind]bool
	subscribers []func(Change)
	// later are functions to call once a kind is watched.
	later map[schema.GroupKind][]func(ctx context.Context)
}

func newOptionalKinds(objects cache.Cache, mapper meta.RESTMapper) *optionalKinds {
	return &optionalKinds{
		objects: objects, mapper: mapper, interval: discoveryInterval, now: map[schema.GroupKind]*schema.GroupVersionKind{},
		watched: map[schema.GroupKind]bool{}, later: map[schema.GroupKind][]func(context.Context){},
	}
}

func (k *optionalKinds) subscribe(changed func(Change)) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.subscribers = append(k.subscribers, changed)
}

// version is the served version of a kind; nil if it is not served as far as is known. Only the first call asks the
// API server; start asks again.
func (k *optionalKinds) version(kind schema.GroupKind) (*schema.GroupVersionKind, error) {
	k.mutex.Lock()
	known, asked := k.now[kind]
	k.mutex.Unlock()
	if asked {
		return known, nil
	}
	return k.resolve(optionalKind{kind: kind})
}

// begun is the served version of a kind, once it is watched.
func (k *optionalKinds) begun(kind schema.GroupKind) (schema.GroupVersionKind, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if !k.watched[kind] {
		return schema.GroupVersionKind{}, false
	}
	return *k.now[kind], true
}

// whenBegun calls a function once a kind is watched: at once, if it is.
func (k *optionalKinds) whenBegun(ctx context.Context, kind schema.GroupKind, call func(ctx context.Context)) {
	k.mutex.Lock()
	begun := k.watched[kind]
	if !begun {
		k.later[kind] = append(k.later[kind], call)
	}
	k.mutex.Unlock()
	if begun {
		call(ctx)
	}
}

func (k *optionalKinds) resolve(wanted optionalKind) (*schema.GroupVersionKind, error) {
	found, err := wanted.ask(k.mapper)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("asking for kind %s: %w", wanted.kind, err)
	}
	var served *schema.GroupVersionKind
	if err == nil {
		served = &found
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.now[wanted.kind] == nil {
		k.now[wanted.kind] = served
	}
	return k.now[wanted.kind], nil
}

// ask requests the version of a kind: the one that the API server prefers, if it is accepted.
func (o optionalKind) ask(mapper meta.RESTMapper) (none schema.GroupVersionKind, err error) {
	if o.isResource {
		return mapper.KindFor(schema.GroupVersionResource{Group: o.kind.Group, Resource: o.kind.Kind})
	}
	mapping, err := mapper.RESTMapping(o.kind)
	if err != nil {
		return none, err
	}
	if o.versions == nil || slices.Contains(o.versions, mapping.GroupVersionKind.Version) {
		return mapping.GroupVersionKind, nil
	}
	for _, version := range o.versions {
		mapping, err = mapper.RESTMapping(o.kind, version)
		if err == nil {
			return mapping.GroupVersionKind, nil
		}
		if !meta.IsNoMatchError(err) {
			return none, err
		}
	}
	return none, err
}

// start begins to watch kinds once they are served. It ends with the context, with a MovedError, or once all are
// watched and moved versions need no check.
func (k *optionalKinds) start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, k.interval, true, func(ctx context.Context) (bool, error) {
		missing := 0
		for _, wanted := range k.wanted {
			if !k.watch(ctx, wanted) {
				missing++
			}
		}
		return missing == 0 && k.newMapper == nil, k.moved(ctx)
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
	isServed, err := k.begin(ctx, wanted)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "watching a kind of the platform; trying again", "kind", wanted.kind.String())
	}
	return isServed && err == nil
}

// begin begins to watch a kind if it is served.
func (k *optionalKinds) begin(ctx context.Context, wanted optionalKind) (isServed bool, err error) {
	served, err := k.resolve(wanted)
	if err != nil || served == nil {
		return false, err
	}
	if wanted.begin != nil {
		err = wanted.begin(ctx, *served)
	} else {
		err = k.handle(ctx, wanted, *served)
	}
	if err != nil {
		return true, err
	}
	k.mutex.Lock()
	k.watched[wanted.kind] = true
	later := k.later[wanted.kind]
	delete(k.later, wanted.kind)
	k.mutex.Unlock()
	for _, call := range later {
		call(ctx)
	}
	return true, nil
}

func (k *optionalKinds) handle(ctx context.Context, wanted optionalKind, served schema.GroupVersionKind) error {
	object := wanted.typed
	if object == nil {
		object = asMetadata(served)
	}
	_, err := onChange(ctx, k.objects, object, func(before, after client.Object) {
		if before == nil || after == nil || wanted.differs == nil || wanted.differs(before, after) {
			k.notify(wanted, cmp.Or(after, before))
		}
	})
	return err
}

func (k *optionalKinds) notify(wanted optionalKind, changed client.Object) {
	change := Change{Kind: wanted.kind, Cluster: target.Ref{Namespace: changed.GetNamespace()}, Name: changed.GetName()}
	switch {
	case wanted.everywhere:
		change.Cluster = target.Ref{}
	case wanted.isOfKKP:
		change.Cluster.Kind = target.KindKKP
	}
	k.mutex.Lock()
	subscribers := k.subscribers
	k.mutex.Unlock()
	for _, subscriber := range subscribers {
		subscriber(change)
	}
}
