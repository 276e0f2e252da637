package cluster

import (
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

	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// firstRead is how long the first readers of a kind wait until all its objects were read.
const firstRead = 2 * time.Second

// objects holds objects of Cluster API as valuesTemplates see them. A kind is watched from when a
// template names one of its objects. Who reads an object is told of its next change, once: a pass
// that goes on depending on it reads it again. Changes that no template sees are none.
type objects struct {
	// held keeps what PackObject leaves.
	held cache.Cache

	mutex sync.Mutex
	// begun is when a kind was first read.
	begun map[schema.GroupVersionKind]time.Time
	// readers are those to be told, by object; reads is the same by reader.
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

// read reads an object as PackObject left it: empty if it is too large. The error is errNotRead, or
// the cache's, such as not found.
func (o *objects) read(ctx context.Context, key objectKey, reader Reader) (packed []byte, uid types.UID, err error) {
	informer, since, err := o.begin(ctx, key.kind)
	if err != nil {
		return nil, "", err
	}
	o.note(key, reader) // before it is read, so that no change falls in between
	first, cancel := context.WithDeadline(ctx, since.Add(firstRead))
	defer cancel()
	if !informer.HasSynced() && !toolscache.WaitForCacheSync(first.Done(), informer.HasSynced) {
		return nil, "", errNotRead // its first objects tell the reader that they came
	}
	found := empty(key.kind)
	if err := o.held.Get(ctx, key.NamespacedName, found); err != nil {
		return nil, "", err
	}
	text, _ := found.Object[packedField].(string)
	return []byte(text), found.GetUID(), nil
}

// begin watches a kind if nobody did before, and says since when it is.
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
	told := func(object any) { o.tell(kind, object) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: told, DeleteFunc: told,
		UpdateFunc: func(before, after any) {
			if packedOf(before) != packedOf(after) {
				told(after)
			}
		},
	})
	if err != nil {
		return nil, since, fmt.Errorf("watching objects of kind %s: %w", kind.GroupKind(), err)
	}
	o.begun[kind] = time.Now()
	return informer, o.begun[kind], nil
}

// note has a reader told of the next change.
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

// forget has a reader told of nothing more: a tenant may name ever other objects, which never come.
func (o *objects) forget(reader types.NamespacedName) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for key := range o.reads[reader] {
		o.drop(key, reader)
	}
}

// drop needs the mutex.
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

func (o *objects) tell(kind schema.GroupVersionKind, object any) {
	if tombstone, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	one, isObject := object.(client.Object)
	if !isObject {
		return
	}
	key := objectKey{kind, client.ObjectKeyFromObject(one)}
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

// packedField holds what PackObject leaves of an object.
const packedField = "packed"

// packedFields is how many fields it has then, with apiVersion, kind and metadata.
const packedFields = 4

// packed are an object's identity and what templates see of it.
type packed struct {
	uid  types.UID
	text string
}

func packedOf(object any) (found packed) {
	if one, isObject := object.(*unstructured.Unstructured); isObject {
		found.uid = one.GetUID()
		found.text, _ = one.Object[packedField].(string)
	}
	return found
}

// PackObject leaves of an object of Cluster API what valuesTemplates see, as a text: none of one that
// is too large. Held so, it takes no more memory than it has bytes.
func PackObject(object any) (any, error) {
	whole, isObject := object.(*unstructured.Unstructured)
	if !isObject {
		return object, nil
	}
	if _, isPacked := whole.Object[packedField].(string); isPacked && len(whole.Object) == packedFields {
		return object, nil // this may be called with its own result
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
