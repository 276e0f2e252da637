package release

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// rollStands is how long a list that many share is believed.
const rollStands = 10 * time.Second

// roll answers questions about many names of a namespace from one list that is at most a moment old: installations that begin
// together, or after a restart, ask once for all of them. It does not answer for names that were written since. It may be used by
// many goroutines.
type roll[V any] struct {
	now     func() time.Time
	flights singleflight.Group
	mutex   sync.Mutex
	pages   map[string]*page[V]
}

// page is the list of one namespace; while it is being made it collects what is written.
type page[V any] struct {
	begun   time.Time
	listed  bool
	entries map[string]V
	// touched are names that were written since the list began.
	touched map[string]bool
}

// look tells what the list has of a name, and whether that can be relied on.
func (r *roll[V]) look(ctx context.Context, namespace, name string, list func() (map[string]V, error)) (value V, sure bool, err error) {
	known := r.standing(namespace)
	if known == nil {
		if known, err = r.await(ctx, namespace, list); err != nil {
			return value, false, err
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return known.entries[name], !known.touched[name], nil
}

// await makes a list, or waits for the one that is being made. Whoever waited is answered from it, however long it took.
func (r *roll[V]) await(ctx context.Context, namespace string, list func() (map[string]V, error)) (*page[V], error) {
	flight := r.flights.DoChan(namespace, func() (any, error) {
		if known := r.standing(namespace); known != nil { // somebody listed it between the look and the flight
			return known, nil
		}
		return r.take(namespace, list)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case landed := <-flight:
		if landed.Err != nil {
			return nil, landed.Err
		}
		return landed.Val.(*page[V]), nil
	}
}

// standing is the list of a namespace, unless it is too old.
func (r *roll[V]) standing(namespace string) *page[V] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := r.pages[namespace]
	if known == nil || !known.listed || r.now().Sub(known.begun) >= rollStands {
		return nil
	}
	return known
}

// take lists a namespace anew, and drops what is old of others.
func (r *roll[V]) take(namespace string, list func() (map[string]V, error)) (*page[V], error) {
	made := r.begin(namespace)
	entries, err := list()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil {
		delete(r.pages, namespace)
		return nil, err
	}
	made.entries, made.listed = entries, true
	return made, nil
}

func (r *roll[V]) begin(namespace string) *page[V] {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	maps.DeleteFunc(r.pages, func(_ string, known *page[V]) bool { return known.listed && now.Sub(known.begun) >= rollStands })
	if r.pages == nil {
		r.pages = map[string]*page[V]{}
	}
	r.pages[namespace] = &page[V]{begun: now, touched: map[string]bool{}}
	return r.pages[namespace]
}

// touch says that a name was written, or may have been.
func (r *roll[V]) touch(namespace, name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.pages[namespace]; known != nil {
		known.touched[name] = true
	}
}
