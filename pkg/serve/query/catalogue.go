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
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
)

// collectTime is how long changes are collected into one snapshot.
const collectTime = 20 * time.Millisecond

// Catalogue is the seed's merged catalogue, parsed once for each change of an object.
type Catalogue struct {
	namespace string
	marks     *mergedcatalogue.Marks
	logger    logr.Logger
	source    toolscache.ResourceEventHandlerRegistration

	mutex   sync.Mutex
	objects map[types.UID]object
	// claimed are all objects with the role, shared with the cache: another key may validate
	// others.
	claimed map[types.UID]*v1.AddonCatalogue
	nextID  uint64

	changed chan struct{}
	present atomic.Pointer[snapshot]
}

// object is one merged AddonCatalogue. Each content has its own ID.
type object struct {
	id      uint64
	version string
	entry   *catalogue.Entry
}

// snapshot is the immutable catalogue at one moment.
type snapshot struct {
	number     uint64
	objects    []object
	byName     map[string]*catalogue.Entry
	kkpVersion string
}

// NewCatalogue makes an empty catalogue of a namespace's merged objects that have a valid mark.
func NewCatalogue(namespace string, marks *mergedcatalogue.Marks, logger logr.Logger) *Catalogue {
	made := &Catalogue{
		namespace: namespace, marks: marks, logger: logger, changed: make(chan struct{}, 1),
		objects: map[types.UID]object{}, claimed: map[types.UID]*v1.AddonCatalogue{},
	}
	marks.OnChange(made.reread)
	return made
}

// reread reads all objects again, as the key of the marks has changed.
func (c *Catalogue) reread() {
	c.mutex.Lock()
	claimed := slices.Collect(maps.Values(c.claimed))
	c.mutex.Unlock()
	for _, one := range claimed {
		c.put(one)
	}
}

// Watch follows the merged objects in a manager's cache of their namespace. Call it before Run.
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

// Run makes snapshots until the context ends, the first one once all objects were read.
func (c *Catalogue) Run(ctx context.Context) {
	if !toolscache.WaitForCacheSync(ctx.Done(), c.source.HasSynced) {
		return
	}
	select { // objects read at the start are in the first snapshot, and cause no second one
	case <-c.changed:
	default:
	}
	c.publish()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(collectTime):
			c.publish()
		}
	}
}

func (c *Catalogue) now() *snapshot { return c.present.Load() }

// put parses a new or changed object. It ignores one that is no valid merged catalogue.
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

func (c *Catalogue) publish() {
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
