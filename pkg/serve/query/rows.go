package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Rows is an index of all AddonInstallations, a row for each, by namespace and name. The events of the manager's cache keep it current. Its
// texts are those of the objects in that cache: a row takes less than 400 bytes of its own.
type Rows struct {
	source toolscache.ResourceEventHandlerRegistration

	mutex sync.RWMutex
	// shelves have the rows of each namespace by name; namespaces are their keys, sorted.
	shelves    map[string][]*row
	namespaces []string
	streams    map[*stream]struct{}
}

// row is immutable. A change replaces it.
type row struct {
	view.Row
	// created is a text, by which rows are sorted.
	created string
	// applied and artifact are parts of the status; nil: nothing is applied yet.
	applied  *v1.AppliedState
	artifact *v1.Artifact
}

// NewRows makes an empty index.
func NewRows() *Rows {
	return &Rows{shelves: map[string][]*row{}, streams: map[*stream]struct{}{}}
}

// Watch follows the AddonInstallations in a manager's cache.
func (r *Rows) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &v1.AddonInstallation{}, cache.BlockUntilSynced(false))
	if err == nil {
		r.source, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: r.put, UpdateFunc: func(_, now any) { r.put(now) }, DeleteFunc: r.remove,
		})
	}
	if err != nil {
		return fmt.Errorf("watching AddonInstallations for queries: %w", err)
	}
	return nil
}

// ready is an *UnavailableError until all installations were read.
func (r *Rows) ready() error {
	if !r.source.HasSynced() {
		return &UnavailableError{"the installations are being read", errNotRead}
	}
	return nil
}

func (r *Rows) put(of any) {
	one, ok := of.(*v1.AddonInstallation)
	if !ok {
		return
	}
	made := &row{
		Row: view.RowOf(one, one.CreationTimestamp.Time), created: one.CreationTimestamp.UTC().Format(time.RFC3339),
		applied: one.Status.LastApplied, artifact: one.Status.Artifact,
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	shelf, isKnown := r.shelves[one.Namespace]
	if !isKnown {
		at, _ := slices.BinarySearch(r.namespaces, one.Namespace)
		r.namespaces = slices.Insert(r.namespaces, at, one.Namespace)
	}
	var before *row
	at, isThere := slices.BinarySearchFunc(shelf, one.Name, byName)
	if isThere {
		before, shelf[at] = shelf[at], made
	} else {
		shelf = slices.Insert(shelf, at, made)
	}
	r.shelves[one.Namespace] = shelf
	if before == nil || before.Row != made.Row {
		r.notify(before, made)
	}
}

func byName(one *row, name string) int { return strings.Compare(one.Name, name) }

func (r *Rows) remove(of any) {
	if tombstone, missed := of.(toolscache.DeletedFinalStateUnknown); missed {
		of = tombstone.Obj
	}
	gone, ok := of.(*v1.AddonInstallation)
	if !ok {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	shelf := r.shelves[gone.Namespace]
	at, isThere := slices.BinarySearchFunc(shelf, gone.Name, byName)
	if !isThere {
		return
	}
	before := shelf[at]
	if shelf = slices.Delete(shelf, at, at+1); len(shelf) > 0 {
		r.shelves[gone.Namespace] = shelf
	} else {
		delete(r.shelves, gone.Namespace)
		at, _ := slices.BinarySearch(r.namespaces, gone.Namespace)
		r.namespaces = slices.Delete(r.namespaces, at, at+1)
	}
	r.notify(before, nil)
}

// notify tells streams about a change; before or after may be nil.
func (r *Rows) notify(before, after *row) {
	for one := range r.streams {
		one.offer(before, after)
	}
}

func (r *Rows) join(one *stream) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.streams[one] = struct{}{}
}

func (r *Rows) leave(one *stream) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.streams, one)
}

// get is a row, or nil.
func (r *Rows) get(key client.ObjectKey) *row {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	shelf := r.shelves[key.Namespace]
	if at, isThere := slices.BinarySearchFunc(shelf, key.Name, byName); isThere {
		return shelf[at]
	}
	return nil
}

// each visits the rows of a scope by namespace and name. visit must not block: changes wait for it.
func (r *Rows) each(of scope, visit func(*row)) { r.walk(of, false, visit) }

// walk is each, or with isBack from the last row to the first.
func (r *Rows) walk(of scope, isBack bool, visit func(*row)) {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	namespaces := of.namespaces
	if of.all {
		namespaces = r.namespaces
	}
	for i := range namespaces {
		shelf := r.shelves[namespaces[placeIn(len(namespaces), i, isBack)]]
		for j := range shelf {
			visit(shelf[placeIn(len(shelf), j, isBack)])
		}
	}
}

// placeIn is a place in a list, counted from its end with isBack.
func placeIn(length, at int, isBack bool) int {
	if isBack {
		return length - 1 - at
	}
	return at
}

// has says whether a namespace has installations.
func (r *Rows) has(namespace string) bool {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	return len(r.shelves[namespace]) > 0
}

// position is the place of a row in an order.
type position struct{ sorted, namespace, name string }

func (p position) compare(other position) int {
	if by := strings.Compare(p.sorted, other.sorted); by != 0 {
		return by
	}
	if by := strings.Compare(p.namespace, other.namespace); by != 0 {
		return by
	}
	return strings.Compare(p.name, other.name)
}

// String is the position as parameter after has it.
func (p position) String() string {
	return strings.TrimPrefix(p.sorted+"/"+p.namespace+"/"+p.name, "/")
}
