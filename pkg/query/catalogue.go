package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
)

// settle gathers the changes of one push of the distributor into one snapshot.
const settle = 20 * time.Millisecond

// Catalogue is the merged catalogue of the seed as the endpoint reads it: parsed once for each change of an object.
type Catalogue struct {
	namespace string
	marks     *mergedcatalogue.Marks
	logger    logr.Logger
	source    toolscache.ResourceEventHandlerRegistration

	mutex   sync.Mutex
	objects map[types.UID]object
	// claimed are the objects with the role, shared with the cache: another key may judge them otherwise.
	claimed map[types.UID]*v1.AddonCatalogue
	nextID  uint64

	changed chan struct{}
	present atomic.Pointer[snapshot]
}

// object is one merged AddonCatalogue. The ID tells its content from any before.
type object struct {
	id      uint64
	version string
	entry   *catalogue.Entry
}

// snapshot is the whole catalogue at one moment; it never changes.
type snapshot struct {
	// number grows with each snapshot.
	number uint64
	// objects are sorted by the add-on's name.
	objects    []object
	byName     map[string]*catalogue.Entry
	kkpVersion string
}

// NewCatalogue makes an empty catalogue of the merged objects in a namespace, of which those count that the marks let be believed.
func NewCatalogue(namespace string, marks *mergedcatalogue.Marks, logger logr.Logger) *Catalogue {
	made := &Catalogue{
		namespace: namespace, marks: marks, logger: logger, changed: make(chan struct{}, 1),
		objects: map[types.UID]object{}, claimed: map[types.UID]*v1.AddonCatalogue{},
	}
	marks.OnChange(made.judge)
	return made
}

// judge takes all objects up again, since the key of the marks has changed.
func (c *Catalogue) judge() {
	c.mutex.Lock()
	claimed := slices.Collect(maps.Values(c.claimed))
	c.mutex.Unlock()
	for _, one := range claimed {
		c.put(one)
	}
}

// Watch follows the merged objects in a manager's cache, which must hold their namespace; call it before Run.
func (c *Catalogue) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &v1.AddonCatalogue{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching merged AddonCatalogues: %w", err)
	}
	c.source, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.put,
		UpdateFunc: func(_, now any) { c.put(now) },
		DeleteFunc: c.remove,
	})
	if err != nil {
		return fmt.Errorf("watching merged AddonCatalogues: %w", err)
	}
	return nil
}

// Run takes changes up until the context ends. The first snapshot is there once all objects were read.
func (c *Catalogue) Run(ctx context.Context) {
	if !toolscache.WaitForCacheSync(ctx.Done(), c.source.HasSynced) {
		return
	}
	select { // what was read at the start is in the first snapshot, and is no reason for a second one
	case <-c.changed:
	default:
	}
	c.take()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
			c.take()
		}
	}
}

// now is the present snapshot; nil before the first one.
func (c *Catalogue) now() *snapshot { return c.present.Load() }

// put parses an object that is new or changed. One that is no merged catalogue is passed over: the distributor puts it right.
func (c *Catalogue) put(of any) {
	given, ok := of.(*v1.AddonCatalogue)
	if !ok || given.Namespace != c.namespace {
		return
	}
	if given.Labels[v1.LabelRole] != v1.RoleMerged {
		c.remove(given)
		return
	}
	believed := c.marks.Believes(given)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.claimed[given.UID] = given
	known, ok := c.objects[given.UID]
	if ok && believed && known.version == given.ResourceVersion && given.ResourceVersion != "" || !ok && !believed {
		return
	}
	entry, err := catalogue.NewEntry(given)
	switch {
	case !believed:
		delete(c.objects, given.UID)
	case err != nil:
		c.logger.Error(err, "a merged catalogue can't be read")
		delete(c.objects, given.UID)
	default:
		c.nextID++
		c.objects[given.UID] = object{id: c.nextID, version: given.ResourceVersion, entry: entry}
	}
	c.mark()
}

func (c *Catalogue) remove(of any) {
	if tombstone, missed := of.(toolscache.DeletedFinalStateUnknown); missed {
		of = tombstone.Obj
	}
	gone, ok := of.(*v1.AddonCatalogue)
	if !ok {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.claimed, gone.UID)
	if _, known := c.objects[gone.UID]; known {
		delete(c.objects, gone.UID)
		c.mark()
	}
}

func (c *Catalogue) mark() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// take makes the next snapshot.
func (c *Catalogue) take() {
	c.mutex.Lock()
	objects := slices.Collect(maps.Values(c.objects))
	c.mutex.Unlock()
	slices.SortFunc(objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.entry.Addon.Name, b.entry.Addon.Name), cmp.Compare(a.id, b.id))
	})
	next := &snapshot{objects: objects, byName: make(map[string]*catalogue.Entry, len(objects))}
	entries := make([]*catalogue.Entry, len(objects))
	for i, object := range objects {
		entries[i] = object.entry
		next.byName[string(object.entry.Addon.Name)] = object.entry
	}
	next.kkpVersion = catalogue.StampedKKPVersion(entries)
	if before := c.present.Load(); before != nil {
		next.number = before.number + 1
	}
	c.present.Store(next)
}
