package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// firstRead is how long the first readers of a kind wait until all its objects are read.
const firstRead = 2 * time.Second

// objects holds objects of Cluster API as valuesTemplates see them. A kind is watched once a template names one of
// its objects. A reader of an object is notified of its next change, once: a reconciliation that still depends on it
// reads it again. A change that no template sees does not count.
type objects struct {
	// held keeps the text that PackObject returns.
	held cache.Cache

	mutex sync.Mutex
	// begun is the time when a kind was first read.
	begun map[schema.GroupVersionKind]time.Time
	// readers are those to notify, by object; reads is the same by reader.
	readers map[objectKey]map[types.NamespacedName]func()
	reads   map[types.NamespacedName]map[objectKey]bool
}

// objectKey is an object of a kind.
type objectKey struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

func newObjects(held cache.Cache) *objects {
	return &objects{
		held: held, begun: map[schema.GroupVersionKind]time.Time{}, readers: map[objectKey]map[types.NamespacedName]func(){},
		reads: map[types.NamespacedName]map[objectKey]bool{},
	}
}

// read reads an object as PackObject stored it: empty if it is too large. The error is errNotRead, or the cache's,
// such as not found.
func (o *objects) read(ctx context.Context, key objectKey, reader Reader) (packed []byte, uid types.UID, err error) {
	informer, since, err := o.begin(ctx, key.kind)
	if err != nil {
		return nil, "", err
	}
	o.note(key, reader) // before reading, so that no change is missed
	first, cancel := context.WithDeadline(ctx, since.Add(firstRead))
	defer cancel()
	if !informer.HasSynced() && !toolscache.WaitForCacheSync(first.Done(), informer.HasSynced) {
		return nil, "", errNotRead // the reader is notified when the first objects arrive
	}
	found := empty(key.kind)
	if err := o.held.Get(ctx, key.NamespacedName, found); err != nil {
		return nil, "", err
	}
	text, _ := found.Object[packedField].(string)
	return []byte(text), found.GetUID(), nil
}

// begin starts to watch a kind unless it is watched, and returns the time since when it is.
func (o *objects) begin(ctx context.Context, kind schema.GroupVersionKind) (cache.Informer, time.Time, error) {
	informer, err := o.held.GetInformer(ctx, empty(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("watching objects of kind %s: %w", kind.GroupKind(), err)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	since, isWatched := o.begun[kind]
	if isWatched {
		return informer, since, nil
	}
	_, err = onChange(ctx, o.held, empty(kind), func(before, after *unstructured.Unstructured) {
		if before == nil || after == nil || packedOf(before) != packedOf(after) {
			o.notify(objectKey{kind, client.ObjectKeyFromObject(cmp.Or(after, before))})
		}
	})
	if err != nil {
		return nil, since, fmt.Errorf("watching objects of kind %s: %w", kind.GroupKind(), err)
	}
	o.begun[kind] = time.Now()
	return informer, o.begun[kind], nil
}

// note registers a reader for the next change.
func (o *objects) note(key objectKey, reader Reader) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.readers[key] == nil {
		o.readers[key] = map[types.NamespacedName]func(){}
	}
	o.readers[key][reader.Name] = reader.Changed
	if o.reads[reader.Name] == nil {
		o.reads[reader.Name] = map[objectKey]bool{}
	}
	o.reads[reader.Name][key] = true
}

// forget deregisters a reader from all objects: a tenant may name ever more objects that never exist.
func (o *objects) forget(reader types.NamespacedName) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for key := range o.reads[reader] {
		o.drop(key, reader)
	}
}

// drop requires that the caller holds the mutex.
func (o *objects) drop(key objectKey, reader types.NamespacedName) {
	delete(o.readers[key], reader)
	if len(o.readers[key]) == 0 {
		delete(o.readers, key)
	}
	delete(o.reads[reader], key)
	if len(o.reads[reader]) == 0 {
		delete(o.reads, reader)
	}
}

func (o *objects) notify(key objectKey) {
	o.mutex.Lock()
	readers := maps.Clone(o.readers[key])
	for reader := range readers {
		o.drop(key, reader)
	}
	o.mutex.Unlock()
	for _, changed := range readers {
		changed()
	}
}

func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// packedField holds the text that PackObject stores for an object.
const packedField = "packed"

// packedFields is the number of fields of a packed object, with apiVersion, kind and metadata.
const packedFields = 4

// packed is an object's identity and the text that templates see of it.
type packed struct {
	uid  types.UID
	text string
}

func packedOf(one *unstructured.Unstructured) packed {
	text, _ := one.Object[packedField].(string)
	return packed{one.GetUID(), text}
}

// PackObject reduces an object of Cluster API to the text that valuesTemplates see; the text of an object that is too
// large is empty. In memory it takes no more than its bytes.
func PackObject(object any) (any, error) {
	whole, isObject := object.(*unstructured.Unstructured)
	if !isObject {
		return object, nil
	}
	if _, isPacked := whole.Object[packedField].(string); isPacked && len(whole.Object) == packedFields {
		return object, nil // it may be called with its own result
	}
	held := empty(whole.GroupVersionKind())
	held.SetNamespace(whole.GetNamespace())
	held.SetName(whole.GetName())
	held.SetUID(whole.GetUID())
	held.SetResourceVersion(whole.GetResourceVersion())
	text, err := templatedata.PackCAPI(whole.Object)
	if err != nil {
		text = nil
	}
	held.Object[packedField] = string(text)
	return held, nil
}
